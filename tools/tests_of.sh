#!/bin/sh
# The tests that mirror a room or module, by the end of its path: a folder of tests/, else modules. `./dev test` runs
# them, `./dev mutate` tries changes on them.
#   tests_of.sh ROOM        their paths; nothing where none does
#   tests_of.sh -like ROOM  up to three rooms and modules that are called much like it, the likest first
set -eu

if [ "$1" = -like ]; then
  find tests -type d -o -name 'test_*.py' | sed 's|.*/||; s|^test_||; s|\.py$||' | grep -v '^__' | sort -u |
    awk -v asked="$(basename "${2%.py}")" '
      function pairs(word, found,    at) {
        split("", found)
        for (at = 1; at < length(word); at++) found[substr(word, at, 2)] = 1
        return length(word) - 1
      }
      BEGIN { of_asked = pairs(asked, wanted) }
      {
        of_this = pairs($0, here); both = 0
        for (pair in here) if (pair in wanted) both++
        if (of_asked + of_this > 0 && 2 * both / (of_asked + of_this) >= 0.5)
          printf "%.3f %s\n", 2 * both / (of_asked + of_this), $0
      }' | sort -rn | head -n 3 | cut -d ' ' -f 2
  exit
fi
room=$(echo "${1%.py}" | sed 's|^src/podtrail/||; s|podtrail_[a-z]*/||')
if [ -d "tests/$room" ]; then
  echo "tests/$room"
else
  find tests -type d -path "*/$room" -o -path "*/$(echo "/$room" | sed 's|/\([^/]*\)$|/test_*\1*.py|; s|^/||')"
fi
