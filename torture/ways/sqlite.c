/* SQLite in serialized mode, as Debian builds it: one connection of all requests, and one for each. */
#include "torture.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sqlite3 *opened(void) {
    sqlite3 *database = NULL;
    EXPECT(sqlite3_open_v2(":memory:", &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, NULL) == SQLITE_OK);
    return database;
}

static sqlite3_int64 asked(sqlite3 *database, const char *query, sqlite3_int64 argument) {
    sqlite3_stmt *statement = NULL;
    sqlite3_int64 answer = -1;
    EXPECT(sqlite3_prepare_v2(database, query, -1, &statement, NULL) == SQLITE_OK);
    sqlite3_bind_int64(statement, 1, argument);
    work(1);
    if (sqlite3_step(statement) == SQLITE_ROW) answer = sqlite3_column_int64(statement, 0);
    work(1);
    sqlite3_finalize(statement);
    return answer;
}

static void twice(sqlite3_context *context, int count, sqlite3_value **values) {
    (void)count;
    work(1);
    sqlite3_result_int64(context, 2 * sqlite3_value_int64(values[0]));
}

static int progress(void *unused) {
    (void)unused;
    work(1);
    return 0;
}

static sqlite3 *of_all;

__attribute__((constructor)) static void open_for_all(void) {
    of_all = opened();
    sqlite3_exec(of_all, "CREATE TABLE kept (number INTEGER PRIMARY KEY, twice INTEGER)", NULL, NULL, NULL);
    sqlite3_create_function(of_all, "double", 1, SQLITE_UTF8, NULL, twice, NULL, NULL);
}

/* The connection's lock is held while a function of ours is called back and interrupted. */
WAY(sqlite_connection_of_all) {
    const sqlite3_int64 number = (sqlite3_int64)(seed % 512);
    asked(of_all, "INSERT OR REPLACE INTO kept VALUES (?1, double(?1))", number);
    EXPECT(asked(of_all, "SELECT twice FROM kept WHERE number = ?", number) == 2 * number);
    EXPECT(asked(of_all, "SELECT double(?)", number + 1) == 2 * number + 2);
}

WAY(sqlite_connection_of_its_own) {
    sqlite3 *own = opened();
    sqlite3_create_function(own, "double", 1, SQLITE_UTF8, NULL, twice, NULL, NULL);
    sqlite3_progress_handler(own, 20, progress, NULL);
    const sqlite3_int64 number = (sqlite3_int64)seed;
    EXPECT(asked(own, "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < 20) SELECT sum(double(i)) + ? FROM n", number) == 420 + number);
    sqlite3_close(own);
}
