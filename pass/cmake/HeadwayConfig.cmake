# find_package(Headway) for a project that is compiled by clang 19 (CMAKE_C_COMPILER=clang-19,
# CMAKE_CXX_COMPILER=clang++-19): the targets that are to be preemptible link Headway::Preemptible.
#
#   find_package(Headway REQUIRED)
#   target_link_libraries(service PRIVATE Headway::Preemptible)
#
# Options, as CMake variables: HEADWAY_PROBE (flag, tsc), HEADWAY_PROBE_DISTANCE (instructions),
# HEADWAY_REPORT (a file or directory). To compile a whole project without touching it, use
# headway-toolchain.cmake instead.
foreach(LANGUAGE C CXX)
  if(CMAKE_${LANGUAGE}_COMPILER_LOADED AND NOT (CMAKE_${LANGUAGE}_COMPILER_ID STREQUAL "Clang"
     AND CMAKE_${LANGUAGE}_COMPILER_VERSION VERSION_GREATER_EQUAL 19 AND CMAKE_${LANGUAGE}_COMPILER_VERSION VERSION_LESS 20))
    set(Headway_FOUND FALSE)
    set(Headway_NOT_FOUND_MESSAGE
      "the pass is built for clang 19, but the ${LANGUAGE} compiler is ${CMAKE_${LANGUAGE}_COMPILER_ID} ${CMAKE_${LANGUAGE}_COMPILER_VERSION}: set CMAKE_${LANGUAGE}_COMPILER to clang-19 or clang++-19")
    return()
  endif()
endforeach()

get_filename_component(_headway_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(_headway_plugin "${_headway_prefix}/lib/headway/headway-pass-19.so")
foreach(FILE "${_headway_plugin}" "${_headway_prefix}/lib/headway/libheadway_probes.a")
  if(NOT EXISTS "${FILE}")
    set(Headway_FOUND FALSE)
    set(Headway_NOT_FOUND_MESSAGE "${FILE} is missing: install the pass again (make install-pass)")
    return()
  endif()
endforeach()

if(NOT TARGET Headway::Preemptible)
  add_library(Headway::Preemptible INTERFACE IMPORTED)
  # Loaded once for its options and once as a pass. SHELL: splits at spaces, so values are in quotes.
  set(_headway_options "SHELL:\"-fplugin=${_headway_plugin}\" \"-fpass-plugin=${_headway_plugin}\"")
  foreach(OPTION PROBE PROBE_DISTANCE REPORT)
    if(DEFINED HEADWAY_${OPTION})
      string(TOLOWER "${OPTION}" _headway_name)
      string(REPLACE "_" "-" _headway_name "${_headway_name}")
      list(APPEND _headway_options "SHELL:-Xclang -mllvm -Xclang \"-headway-${_headway_name}=${HEADWAY_${OPTION}}\"")
    endif()
  endforeach()
  target_compile_options(Headway::Preemptible INTERFACE ${_headway_options})
  target_include_directories(Headway::Preemptible INTERFACE "${_headway_prefix}/include")
  target_link_libraries(Headway::Preemptible INTERFACE "${_headway_prefix}/lib/headway/libheadway_probes.a")
endif()
set(Headway_FOUND TRUE)
