# Installs Holdfast into a fresh prefix, builds the consumer project against it, and compares what
# it prints; once more with the prefix moved. Variables: HOLDFAST_BINARY_DIR, HOLDFAST_SOURCE_DIR,
# CONSUMER_SOURCE_DIR, GENERATOR, CXX_COMPILER, HAS_KERNELS.

set(work "${HOLDFAST_BINARY_DIR}/consumer")
set(expected "2 4\n")
if(HAS_KERNELS)
  string(APPEND expected "3 6\n")
endif()
# Neither an installation of this machine nor kernels that were compiled before.
unset(ENV{HOLDFAST_JIT_LIBRARY})
set(ENV{HOLDFAST_DISK_CACHE} 0)

function(run_or_fail what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "consumer: ${what} failed (${result}):\n${output}")
  endif()
  set(run_output "${output}" PARENT_SCOPE)
endfunction()

function(check_consumer prefix build)
  run_or_fail("configure" "${CMAKE_COMMAND}" -G "${GENERATOR}" -S "${CONSUMER_SOURCE_DIR}" -B "${build}" "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}"
              "-DCMAKE_PREFIX_PATH=${prefix}" -DCMAKE_BUILD_TYPE=Release)
  run_or_fail("build" "${CMAKE_COMMAND}" --build "${build}")
  run_or_fail("run" "${build}/consumer")
  if(NOT run_output STREQUAL expected)
    message(FATAL_ERROR "consumer: expected \"${expected}\", got \"${run_output}\"")
  endif()
  run_or_fail("command" "${prefix}/bin/holdfast" info)
  if(HAS_KERNELS)
    file(WRITE "${work}/kernel.metal" "kernel void k(device float* y [[buffer(0)]]) { y[0] = 1; }\n")
    run_or_fail("kernel check" "${prefix}/bin/holdfast" kernel check "${work}/kernel.metal")
  endif()
endfunction()

# A project that was written for MLX: a binding in a shared library and in a program.
function(check_mlx_consumer prefix build)
  run_or_fail("configure" "${CMAKE_COMMAND}" -G "${GENERATOR}" -S "${CONSUMER_SOURCE_DIR}/mlx" -B "${build}" "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}"
              "-DCMAKE_PREFIX_PATH=${prefix}" -DCMAKE_BUILD_TYPE=Release)
  run_or_fail("build" "${CMAKE_COMMAND}" --build "${build}")
  set(folder "")
  if(HAS_KERNELS)
    set(folder "${build}")
  endif()
  foreach(program shared_program static_program)
    run_or_fail("${program}" "${build}/${program}" ${folder})
    if(NOT run_output STREQUAL "done\n")
      message(FATAL_ERROR "consumer: ${program} printed \"${run_output}\"")
    endif()
  endforeach()
  # Nothing but retaining keeps a kernel's input whose handle is freed at once: without it, results are wrong in some of a few runs.
  if(HAS_KERNELS)
    set(is_wrong FALSE)
    foreach(try RANGE 20)
      execute_process(COMMAND "${CMAKE_COMMAND}" -E env HOLDFAST_RETAIN=0 "${build}/shared_program" "${folder}" RESULT_VARIABLE result
                      OUTPUT_QUIET ERROR_QUIET)
      if(NOT result EQUAL 0)
        set(is_wrong TRUE)
        break()
      endif()
    endforeach()
    if(NOT is_wrong)
      message(FATAL_ERROR "consumer: kernels whose inputs are freed at once are right without retaining, so the program shows nothing")
    endif()
  endif()
  # The binding shows nothing but itself.
  run_or_fail("nm" nm -D --defined-only "${build}/libbinding.so")
  if(run_output MATCHES "holdfast[0-9]" OR NOT run_output MATCHES "binding_new")
    message(FATAL_ERROR "consumer: libbinding.so shows other symbols than its own")
  endif()
endfunction()

# Fresh each time: a file that the install forgets must not survive from an earlier one.
file(REMOVE_RECURSE "${work}")
run_or_fail("install" "${CMAKE_COMMAND}" --install "${HOLDFAST_BINARY_DIR}" --prefix "${work}/prefix")
check_consumer("${work}/prefix" "${work}/build")
check_mlx_consumer("${work}/prefix" "${work}/build-mlx")
file(RENAME "${work}/prefix" "${work}/moved")
check_consumer("${work}/moved" "${work}/build-moved")

# A build folder in which nothing is built yet: the installation copies nothing, and says what to do.
run_or_fail("configure" "${CMAKE_COMMAND}" -G "${GENERATOR}" -S "${HOLDFAST_SOURCE_DIR}" -B "${work}/unbuilt" "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}"
            -DHOLDFAST_TESTS=OFF -DHOLDFAST_PYTHON=OFF)
execute_process(COMMAND "${CMAKE_COMMAND}" --install "${work}/unbuilt" --prefix "${work}/empty" RESULT_VARIABLE result OUTPUT_VARIABLE output
                ERROR_VARIABLE output)
string(REGEX REPLACE "[ \n]+" " " output "${output}")
if(result EQUAL 0 OR NOT output MATCHES "is not built yet; first: cmake --build [^ ]*/unbuilt --target holdfast-package" OR EXISTS "${work}/empty")
  message(FATAL_ERROR "consumer: installing what is not built must say what to do, got (${result}):\n${output}")
endif()
