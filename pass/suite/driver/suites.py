"""The programs of others whose own tests run on a fiber that changes threads: where each comes from, how it is built and what tests it.

Their authors' build systems and tests, as they are. `CC` and `CXX` are `harness/roaming-cc` and `roaming-c++`. A configure script has them without probes.
"""
from typing import NamedTuple


class Suite(NamedTuple):
    build: str  # a shell command in a copy of the package's directory
    test: str  # likewise; succeeds if all tests do


def _configured(options: str = "", targets: str = "", extra: str = "") -> str:
    return f"HEADWAY_PROBES=off ./configure --quiet --disable-shared --enable-static --disable-dependency-tracking {options} && make -s -j2 {targets} {extra}"


def _cmake(options: str = "", directory: str = ".", targets: str = "") -> str:
    return (f"HEADWAY_PROBES=off cmake -G Ninja -S {directory} -B build -DBUILD_SHARED_LIBS=OFF -DCMAKE_BUILD_TYPE=Release -DCMAKE_POLICY_VERSION_MINIMUM=3.5 {options} && "
            f"ninja -j2 -C build {targets}")


_CTEST = "ctest --test-dir build --output-on-failure"

SUITES = {
    "brotli": Suite(_cmake(), _CTEST),
    "bzip2": Suite("make -s -j2 CC=$CC bzip2 bzip2recover", "make test"),
    "cjson": Suite(_cmake("-DENABLE_CJSON_UTILS=ON -DENABLE_CUSTOM_COMPILER_FLAGS=OFF"), _CTEST),
    "cmark": Suite(_cmake("-DCMARK_SHARED=OFF -DCMARK_STATIC=ON"), _CTEST),
    "expat": Suite(_cmake("-DEXPAT_SHARED_LIBS=OFF -DEXPAT_BUILD_DOCS=OFF -DEXPAT_BUILD_EXAMPLES=OFF", "expat"), _CTEST),
    "gzip": Suite(_configured(), "make -s check"),
    "http-parser": Suite("make -s CC=$CC CFLAGS= test_g", "./test_g"),
    "jansson": Suite(_cmake("-DJANSSON_BUILD_DOCS=OFF -DJANSSON_BUILD_SHARED_LIBS=OFF"), _CTEST),
    "json-c": Suite(_cmake("-DBUILD_STATIC_LIBS=ON -DDISABLE_WERROR=ON"), "USE_VALGRIND=0 " + _CTEST),
    "libcsv": Suite(_configured(), "make -s check"),
    "libevent": Suite(_cmake("-DEVENT__LIBRARY_TYPE=STATIC -DEVENT__DISABLE_OPENSSL=ON -DEVENT__DISABLE_MBEDTLS=ON -DEVENT__DISABLE_SAMPLES=ON"), "build/bin/regress"),
    "libfastjson": Suite(_configured(), "make -s check"),
    "libsamplerate": Suite(_cmake("-DLIBSAMPLERATE_EXAMPLES=OFF"), _CTEST),
    "libtommath": Suite("make -s -j2 CC=$CC test", "./test"),
    "libyaml": Suite(_cmake("-DBUILD_TESTING=ON"), _CTEST),
    "lz4": Suite("make -s -j2 -C tests CC=$CC fuzzer frametest datagen", "tests/fuzzer -t1 -s17 -i500 && tests/frametest -s17 -i500"),
    "lzlib": Suite("./configure CC=$CC CFLAGS=-O2 && make -s -j2", "make -s check"),
    "lzo2": Suite(_configured(), "make -s check"),
    "md4c": Suite(_cmake(), "for spec in spec coverage; do python3 test/spec_tests.py -s test/$spec.txt -p build/md2html/md2html || exit 1; done"),
    "popt": Suite(_configured(), "make -s check"),
    "pugixml": Suite(_cmake("-DPUGIXML_BUILD_TESTS=ON"), _CTEST),
    "tinyxml2": Suite(_cmake("-Dtinyxml2_BUILD_TESTING=ON"), _CTEST),
    "xxhash": Suite("make -s -j2 CC=$CC xxhsum", "make -s CC=$CC test-xxhsum-c"),
    "yajl": Suite(_cmake(), "cd test/parsing && ./run_tests.sh $(find ../../build -name yajl_test -type f)"),
    "zlib": Suite("./configure --static && make -s -j2 example minigzip infcover CFLAGS='-O2 -I.'", "make teststatic && ./infcover"),
}
