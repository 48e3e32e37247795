// Runs a script in a new state of Lua: numbers, strings, patterns, tables, closures, methods and recursion.
#include "real.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

const unsigned kernel_passes = 1;

static const char SCRIPT[] =
    "local n = ...\n"
    "local function queens(size)\n"
    "  local solutions, columns, left, right = 0, {}, {}, {}\n"
    "  local function place(row)\n"
    "    if row > size then solutions = solutions + 1 return end\n"
    "    for c = 1, size do\n"
    "      if not (columns[c] or left[row + c] or right[row - c + size]) then\n"
    "        columns[c], left[row + c], right[row - c + size] = true, true, true\n"
    "        place(row + 1)\n"
    "        columns[c], left[row + c], right[row - c + size] = false, false, false\n"
    "      end\n"
    "    end\n"
    "  end\n"
    "  place(1)\n"
    "  return solutions\n"
    "end\n"
    "local Point = {}\n"
    "Point.__index = Point\n"
    "Point.__add = function(a, b) return setmetatable({x = a.x + b.x, y = a.y + b.y}, Point) end\n"
    "function Point:length() return math.sqrt(self.x * self.x + self.y * self.y) end\n"
    "local seed, numbers, names, parts = 42, {}, {}, {}\n"
    "local function random() seed = (seed * 1103515245 + 12345) % 2147483648 return seed end\n"
    "local sum = setmetatable({x = 0, y = 0}, Point)\n"
    "for i = 1, n do\n"
    "  numbers[i] = random() % 1000\n"
    "  local name = 'k' .. random() % 97\n"
    "  names[name] = (names[name] or 0) + 1\n"
    "  sum = sum + setmetatable({x = numbers[i], y = i}, Point)\n"
    "  parts[#parts + 1] = string.format('%s=%x', name, numbers[i])\n"
    "end\n"
    "table.sort(numbers, function(a, b) return a < b end)\n"
    "local sorted = 'sorted'\n"
    "for i = 2, n do if numbers[i - 1] > numbers[i] then sorted = 'unsorted' end end\n"
    "local text, found, kinds = table.concat(parts, ' '), 0, 0\n"
    "for key, value in text:gmatch('(k%d+)=(%x+)') do found = found + names[key] + tonumber(value, 16) end\n"
    "local upper = text:gsub('k(%d)', function(d) return 'K' .. d end):upper()\n"
    "for _ in pairs(names) do kinds = kinds + 1 end\n"
    "return string.format('%d %s %d %d %d %d', queens(7), sorted, kinds, found, sum:length() // 1, #upper) .. upper:sub(1, 999)\n";
static const char RESULT_BEGINS[] = "40 sorted 97 ";

static lua_Integer elements;
static char result[4096];

void kernel_setup(bool full) { elements = full ? 3000 : 1000; }

void kernel_run(void) {
    lua_State *state = luaL_newstate();
    if (state == NULL) real_fail("a new state");
    luaL_requiref(state, "_G", luaopen_base, 1);
    luaL_requiref(state, "string", luaopen_string, 1);
    luaL_requiref(state, "table", luaopen_table, 1);
    luaL_requiref(state, "math", luaopen_math, 1);
    if (luaL_loadstring(state, SCRIPT) != LUA_OK) real_fail("reading the script");
    lua_pushinteger(state, elements);
    if (lua_pcall(state, 1, 1, 0) != LUA_OK) real_fail(lua_tostring(state, -1));
    snprintf(result, sizeof result, "%s", lua_tostring(state, -1));
    lua_close(state);
}

uint64_t kernel_digest(void) { return suite_mix_bytes(0, result, strlen(result)); }

bool kernel_valid(void) { return strncmp(result, RESULT_BEGINS, sizeof RESULT_BEGINS - 1) == 0; }
