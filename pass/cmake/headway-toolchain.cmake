# Compiles a whole CMake project with the pass: cmake -DCMAKE_TOOLCHAIN_FILE=…/headway-toolchain.cmake
get_filename_component(_headway_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(CMAKE_C_COMPILER "${_headway_prefix}/bin/headway-cc")
set(CMAKE_CXX_COMPILER "${_headway_prefix}/bin/headway-c++")
