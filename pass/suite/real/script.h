// What an interpreter of JavaScript runs: numbers, strings, arrays, objects, closures, regular expressions and recursion.
#ifndef HEADWAY_SUITE_SCRIPT_H
#define HEADWAY_SUITE_SCRIPT_H

static const char SCRIPT[] =
    "function queens(n) {\n"
    "  var solutions = 0;\n"
    "  function place(row, columns, left, right) {\n"
    "    if (row === n) { solutions++; return; }\n"
    "    for (var c = 0; c < n; c++) {\n"
    "      var bit = 1 << c, l = 1 << (row + c), r = 1 << (row - c + n);\n"
    "      if ((columns & bit) || (left & l) || (right & r)) continue;\n"
    "      place(row + 1, columns | bit, left | l, right | r);\n"
    "    }\n"
    "  }\n"
    "  place(0, 0, 0, 0);\n"
    "  return solutions;\n"
    "}\n"
    "function Point(x, y) { this.x = x; this.y = y; }\n"
    "Point.prototype.length = function () { return Math.sqrt(this.x * this.x + this.y * this.y); };\n"
    "function work(n) {\n"
    "  var seed = 42, numbers = [], names = {}, text = '', i, sum = 0;\n"
    "  function random() { seed = (seed * 1103515245 + 12345) % 2147483648; return seed; }\n"
    "  for (i = 0; i < n; i++) {\n"
    "    numbers.push(random() % 1000);\n"
    "    var name = 'k' + (random() % 97);\n"
    "    names[name] = (names[name] || 0) + 1;\n"
    "    sum += new Point(numbers[i], i).length();\n"
    "    if (i % 4 === 0) text += name + ' ' + numbers[i].toString(16) + ';';\n"
    "  }\n"
    "  numbers.sort(function (a, b) { return a - b; });\n"
    "  var sorted = numbers.every(function (v, k) { return k === 0 || numbers[k - 1] <= v; });\n"
    "  var found = text.split(';').filter(function (s) { return /^k[0-9]*5 [a-f]/.test(s); }).map(function (s) { return s.length; });\n"
    "  var again = JSON.parse(JSON.stringify({ names: names, found: found, first: numbers.slice(0, 20) }));\n"
    "  return queens(6) + (sorted ? ' sorted ' : ' unsorted ') + Math.floor(sum) + JSON.stringify(again);\n"
    "}\n";

// What every right result begins with.
static const char RESULT_BEGINS[] = "4 sorted ";

// The script with a call of its work at the end.
static inline void make_script(char *script, unsigned elements) { sprintf(script, "%swork(%u);\n", SCRIPT, elements); }

#endif
