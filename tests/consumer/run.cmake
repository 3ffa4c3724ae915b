# Installs Holdfast into a fresh prefix, builds the consumer project against it, and compares what
# it prints. Variables: HOLDFAST_BINARY_DIR, CONSUMER_SOURCE_DIR, GENERATOR, CXX_COMPILER.

set(work "${HOLDFAST_BINARY_DIR}/consumer")
set(expected "2 4\n")

function(run_or_fail what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "consumer: ${what} failed (${result}):\n${output}")
  endif()
  set(run_output "${output}" PARENT_SCOPE)
endfunction()

# Fresh each time: a file that the install forgets must not survive from an earlier one.
file(REMOVE_RECURSE "${work}")
run_or_fail("install" "${CMAKE_COMMAND}" --install "${HOLDFAST_BINARY_DIR}" --prefix "${work}/prefix")
run_or_fail("configure" "${CMAKE_COMMAND}" -G "${GENERATOR}" -S "${CONSUMER_SOURCE_DIR}" -B "${work}/build"
            "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}" "-DCMAKE_PREFIX_PATH=${work}/prefix" -DCMAKE_BUILD_TYPE=Release)
run_or_fail("build" "${CMAKE_COMMAND}" --build "${work}/build")
run_or_fail("run" "${work}/build/consumer")
if(NOT run_output STREQUAL expected)
  message(FATAL_ERROR "consumer: expected \"${expected}\", got \"${run_output}\"")
endif()
