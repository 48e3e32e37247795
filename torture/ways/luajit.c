/* LuaJIT, which is compiled without probes, calls back functions with probes; its errors unwind through them. */
#include "torture.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdlib.h>
#include <string.h>

static int twice(lua_State *lua) {
    const lua_Number number = luaL_checknumber(lua, 1);
    work(1);
    lua_pushnumber(lua, 2 * number);
    return 1;
}

static int fails(lua_State *lua) {
    work(1);
    return luaL_error(lua, "failed for %d", (int)luaL_checkinteger(lua, 1));
}

static lua_State *opened(void) {
    lua_State *lua = luaL_newstate();
    luaL_openlibs(lua);
    lua_register(lua, "twice", twice);
    lua_register(lua, "fails", fails);
    return lua;
}

WAY(luajit_callbacks) {
    lua_State *lua = opened();
    lua_pushinteger(lua, (lua_Integer)(seed % 1000));
    lua_setglobal(lua, "seed");
    EXPECT(luaL_dostring(lua, "local sum = 0 for i = 1, 60 do sum = sum + twice(i) end return sum + seed") == 0);
    EXPECT(lua_tointeger(lua, -1) == 3660 + (lua_Integer)(seed % 1000));
    lua_close(lua);
}

WAY(luajit_errors) {
    lua_State *lua = opened();
    lua_pushinteger(lua, (lua_Integer)(seed % 1000));
    lua_setglobal(lua, "seed");
    EXPECT(luaL_dostring(lua, "local ok, why = pcall(fails, seed) assert(not ok) return why") == 0);
    const char *why = lua_tostring(lua, -1);
    const char *number = why ? strrchr(why, ' ') : NULL;
    EXPECT(number && strtoul(number, NULL, 10) == seed % 1000);
    lua_close(lua);
}

/* A coroutine of Lua's, resumed around interruptions. */
WAY(luajit_coroutines) {
    lua_State *lua = opened();
    EXPECT(luaL_dostring(lua, "local c = coroutine.wrap(function() for i = 1, 8 do coroutine.yield(twice(i)) end end) local sum = 0 for _ = 1, 8 do sum = sum + c() end return sum") == 0);
    EXPECT(lua_tointeger(lua, -1) == 72);
    lua_close(lua);
}
