// Fills a database in memory and asks it: rows in, an index, aggregates, a join, a sort, changes.
#include "real.h"

#include <sqlite3.h>

const unsigned kernel_passes = 1;

static unsigned orders;
static uint64_t digest, amount_written, amount_read;

void kernel_setup(bool full) { orders = full ? 2500 : 300; }

static void execute(sqlite3 *database, const char *statement) {
    if (sqlite3_exec(database, statement, NULL, NULL, NULL) != SQLITE_OK) real_fail(statement);
}

// Every row into the digest; gives the last integer of the last row.
static uint64_t query(sqlite3 *database, const char *statement) {
    sqlite3_stmt *prepared;
    uint64_t last = 0;
    if (sqlite3_prepare_v2(database, statement, -1, &prepared, NULL) != SQLITE_OK) real_fail(statement);
    while (sqlite3_step(prepared) == SQLITE_ROW)
        for (int column = 0; column < sqlite3_column_count(prepared); column++) {
            const char *text = (const char *)sqlite3_column_text(prepared, column);
            digest = suite_mix_bytes(digest, text, strlen(text));
            last = (uint64_t)sqlite3_column_int64(prepared, column);
        }
    if (sqlite3_finalize(prepared) != SQLITE_OK) real_fail(statement);
    return last;
}

static void fill(sqlite3 *database) {
    uint64_t seed = 4;
    sqlite3_stmt *insert;
    amount_written = 0;
    if (sqlite3_prepare_v2(database, "INSERT INTO orders(customer, amount, note) VALUES (?, ?, ?)", -1, &insert, NULL) != SQLITE_OK)
        real_fail("preparing");
    for (unsigned order = 0; order < orders; order++) {
        char note[16];
        unsigned amount = suite_below(&seed, 10000);
        amount_written += amount;
        sqlite3_bind_int(insert, 1, (int)suite_below(&seed, 200));
        sqlite3_bind_int(insert, 2, (int)amount);
        sqlite3_bind_text(insert, 3, note, (int)real_word(note, &seed), SQLITE_TRANSIENT);
        if (sqlite3_step(insert) != SQLITE_DONE || sqlite3_reset(insert) != SQLITE_OK) real_fail("inserting");
    }
    sqlite3_finalize(insert);
}

void kernel_run(void) {
    sqlite3 *database;
    digest = 0;
    if (sqlite3_open(":memory:", &database) != SQLITE_OK) real_fail("opening");
    execute(database, "CREATE TABLE customers(id INTEGER PRIMARY KEY, name TEXT);"
                      "CREATE TABLE orders(id INTEGER PRIMARY KEY, customer INTEGER, amount INTEGER, note TEXT);"
                      "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 199)"
                      "  INSERT INTO customers SELECT i, 'customer ' || i FROM n;"
                      "BEGIN");
    fill(database);
    execute(database, "COMMIT; CREATE INDEX by_customer ON orders(customer)");
    query(database, "SELECT c.name, count(*), sum(o.amount) FROM customers c JOIN orders o ON o.customer = c.id"
                    "  GROUP BY c.id HAVING count(*) > 5 ORDER BY sum(o.amount) DESC LIMIT 40");
    query(database, "SELECT note, amount FROM orders WHERE note LIKE '%ab%' OR amount BETWEEN 100 AND 200 ORDER BY note, amount");
    query(database, "SELECT upper(substr(note, 2, 3)) AS k, avg(amount) FROM orders GROUP BY k ORDER BY 2 LIMIT 20");
    amount_read = query(database, "SELECT sum(amount) FROM orders");
    execute(database, "UPDATE orders SET amount = amount + 1 WHERE customer < 50; DELETE FROM orders WHERE amount % 3 = 0");
    query(database, "SELECT count(*), sum(amount) FROM orders");
    sqlite3_close(database);
}

uint64_t kernel_digest(void) { return digest; }

bool kernel_valid(void) { return amount_read == amount_written; }
