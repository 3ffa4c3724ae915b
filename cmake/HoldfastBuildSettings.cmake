# How all of our own code is compiled: library, tests and tools alike.
#
# The definitions HOLDFAST_CHECKS, HOLDFAST_CONTROLLED and so on change internal structs. They are
# private to each target of this build and never reach an installed consumer, so no public header
# may depend on them.

include(CheckCXXCompilerFlag)
include(CheckLibraryExists)

# -O2 and no debug information: the kernels, where -O3 pays, ask for it themselves
# (HoldfastSimd.cmake).
if(CMAKE_CXX_FLAGS_RELEASE STREQUAL "-O3 -DNDEBUG")
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG" CACHE STRING "Flags of Release builds" FORCE)
endif()

if(HOLDFAST_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(HOLDFAST_CCACHE_PROGRAM ccache)
  mark_as_advanced(HOLDFAST_CCACHE_PROGRAM)
  if(HOLDFAST_CCACHE_PROGRAM)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${HOLDFAST_CCACHE_PROGRAM}")
  endif()
endif()

# Vector versions of exp, sin and so on come with glibc on x86-64.
set(HOLDFAST_HAVE_LIBMVEC OFF)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(HOLDFAST_X86_64 ON)
  check_library_exists(mvec _ZGVbN4v_expf "" HOLDFAST_FOUND_LIBMVEC)
  if(HOLDFAST_FOUND_LIBMVEC)
    set(HOLDFAST_HAVE_LIBMVEC ON)
  endif()
else()
  set(HOLDFAST_X86_64 OFF)
endif()

if(HOLDFAST_X86_64 AND NOT HOLDFAST_CORE_ONLY)
  set(HOLDFAST_SIMD_VARIANTS baseline avx2 avx512)
else()
  set(HOLDFAST_SIMD_VARIANTS baseline)
endif()

# Most of a compilation is reading headers: the sources of a folder share one reading (those of a large folder two or four), which takes
# a quarter of the time. So names in anonymous namespaces have to differ within a folder, or a file is left out with
# SKIP_UNITY_BUILD_INCLUSION. A source's batch follows from its own name, so that a new file moves no other.
function(holdfast_batch_sources target)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    if(NOT source MATCHES "\\.cpp$")
      continue()
    endif()
    get_filename_component(source "${source}" ABSOLUTE)
    get_filename_component(name "${source}" NAME)
    get_filename_component(folder "${source}" DIRECTORY)
    file(RELATIVE_PATH folder "${PROJECT_SOURCE_DIR}" "${folder}")
    string(REGEX REPLACE "^.*/mutants/[a-z]+/tree/" "" folder "${folder}") # a copy belongs to the folder of its file
    set(batches 1)
    if(folder MATCHES "^src/(ops|kernels/cpu)$")
      set(batches 4)
    elseif(folder MATCHES "^(src/transforms|src/exec|tests/ops|tests/transforms|tests/unit|benchmarks|tools/holdfast)$")
      set(batches 2)
    endif()
    string(MD5 digit "${name}")
    string(SUBSTRING "${digit}" 0 1 digit)
    math(EXPR batch "0x${digit} * ${batches} / 16")
    string(MAKE_C_IDENTIFIER "${folder}_${batch}" group)
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP ${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

function(holdfast_build_settings target)
  target_compile_features(${target} PRIVATE cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  if(HOLDFAST_UNITY)
    holdfast_batch_sources(${target})
  endif()

  # Without -ffp-contract=off the compiler may fuse a*b+c differently in two copies of a loop, and
  # results would depend on how the work was cut.
  target_compile_options(${target} PRIVATE -Wall -Wextra -ffp-contract=off)
  if(NOT HOLDFAST_UNITY)
    target_compile_options(${target} PRIVATE -Wshadow)
  elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # What stands in another file is not shadowed, and no header has an anonymous namespace.
    target_compile_options(${target} PRIVATE -Wshadow=local -Wno-subobject-linkage)
  endif()
  if(HOLDFAST_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12 reports an overlap inside its own std::string for `"text" + string` (GCC bug 105651).
    target_compile_options(${target} PRIVATE -Wno-restrict)
  endif()

  if(HOLDFAST_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${HOLDFAST_SANITIZE} -fno-sanitize-recover=all
                                             -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${HOLDFAST_SANITIZE})
  endif()

  if(HOLDFAST_MUTANTS)
    holdfast_use_mutants(${target} runtime)
  endif()

  foreach(switch HOLDFAST_CHECKS HOLDFAST_CONTROLLED HOLDFAST_CORE_ONLY HOLDFAST_HAVE_LIBMVEC)
    if(${switch})
      target_compile_definitions(${target} PRIVATE ${switch}=1)
    endif()
  endforeach()
  if(HOLDFAST_SIMD_VARIANTS STREQUAL "baseline")
    target_compile_definitions(${target} PRIVATE HOLDFAST_SIMD_ONLY_BASELINE=1)
  endif()
endfunction()
