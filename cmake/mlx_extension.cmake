# What projects that extend MLX call to build their kernels.

# mlx_build_metallib(TARGET <name> TITLE <title> SOURCES <file>... [OUTPUT_DIRECTORY <folder>]
#                    [INCLUDE_DIRS <folder>...] [DEPS <file>...] [DEBUG])
#
# There is no compiled library of kernels: <folder>/<title>.metal, which this makes, includes the sources, and is compiled when a kernel is used.
# Headers of INCLUDE_DIRS that the sources name are copied beside it, where includes are looked for.
function(mlx_build_metallib)
  cmake_parse_arguments(PARSE_ARGV 0 kernels "DEBUG" "TARGET;TITLE;OUTPUT_DIRECTORY" "SOURCES;INCLUDE_DIRS;DEPS")
  foreach(required TARGET TITLE SOURCES)
    if(NOT kernels_${required})
      message(FATAL_ERROR "mlx_build_metallib: ${required} is missing")
    endif()
  endforeach()
  if(NOT kernels_OUTPUT_DIRECTORY)
    set(kernels_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}")
  endif()
  set(library "${kernels_OUTPUT_DIRECTORY}/${kernels_TITLE}.metal")
  set(sources "")
  foreach(source IN LISTS kernels_SOURCES)
    get_filename_component(source "${source}" ABSOLUTE)
    list(APPEND sources "${source}")
  endforeach()
  set(script "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/join_kernels.cmake")
  add_custom_command(
    OUTPUT "${library}"
    COMMAND "${CMAKE_COMMAND}" "-DOUTPUT=${library}" "-DSOURCES=${sources}" "-DINCLUDE_DIRS=${kernels_INCLUDE_DIRS}" -P "${script}"
    DEPENDS ${sources} ${kernels_DEPS} "${script}"
    COMMENT "Joining the kernels of ${kernels_TITLE}" VERBATIM)
  add_custom_target(${kernels_TARGET} ALL DEPENDS "${library}")
endfunction()
