# Sources with mutants: tests/mutants/<area> has patches of single files, and the build makes a patched copy of these under
# mutants/<area>/tree. A target that is built with mutants compiles the copies in place of the files, and finds copies of headers
# before the headers. With no mutant chosen (HOLDFAST_MUTANT) a copy does what its file does.

# Makes the copies; holdfast_mutated_<area> in the caller lists the files that have one, from the root of the repository.
function(holdfast_add_mutants area)
  set(patches_folder "${PROJECT_SOURCE_DIR}/tests/mutants/${area}")
  set(copy "${PROJECT_BINARY_DIR}/mutants/${area}")
  file(GLOB_RECURSE patches CONFIGURE_DEPENDS RELATIVE "${patches_folder}" "${patches_folder}/*.patch")
  list(TRANSFORM patches REPLACE "\\.patch$" "" OUTPUT_VARIABLE paths)
  list(TRANSFORM patches PREPEND "${patches_folder}/")
  list(TRANSFORM paths PREPEND "${PROJECT_SOURCE_DIR}/" OUTPUT_VARIABLE originals)
  list(TRANSFORM paths PREPEND "${copy}/tree/" OUTPUT_VARIABLE copies)
  add_custom_command(
    OUTPUT ${copies}
    COMMAND python3 "${PROJECT_SOURCE_DIR}/scripts/mutants.py" apply ${area} "${copy}"
    DEPENDS ${patches} ${originals} "${PROJECT_SOURCE_DIR}/scripts/mutants.py" "${PROJECT_SOURCE_DIR}/scripts/mutant_patches.py"
    COMMENT "Planting the mutants (${area})" VERBATIM)
  add_custom_target(holdfast-mutants-${area} DEPENDS ${copies})
  set(holdfast_mutated_${area} ${paths} PARENT_SCOPE)
endfunction()

# Replaces sources by their copies, in the list of that name. A source that shares no compilation with others keeps to itself.
function(holdfast_replace_mutated area list)
  foreach(path IN LISTS holdfast_mutated_${area})
    set(original "${PROJECT_SOURCE_DIR}/${path}")
    set(copy "${PROJECT_BINARY_DIR}/mutants/${area}/tree/${path}")
    if(path MATCHES "\\.cpp$")
      list(FIND ${list} "${original}" at)
      if(at EQUAL -1)
        message(FATAL_ERROR "tests/mutants/${area}/${path}.patch: ${path} is no source of what has these mutants")
      endif()
      list(REMOVE_AT ${list} ${at})
      list(APPEND ${list} "${copy}")
      get_source_file_property(is_alone "${original}" SKIP_UNITY_BUILD_INCLUSION)
      set_source_files_properties("${copy}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION "${is_alone}")
    endif()
  endforeach()
  set(${list} ${${list}} PARENT_SCOPE)
endfunction()

# The target sees the copies of headers, and is compiled after they are made.
function(holdfast_use_mutants target area)
  set(tree "${PROJECT_BINARY_DIR}/mutants/${area}/tree")
  target_include_directories(
    ${target} BEFORE PRIVATE "${tree}/src" "${tree}/include" "${PROJECT_SOURCE_DIR}/tests/mutants"
                             "${PROJECT_SOURCE_DIR}/tests/mutants/${area}")
  add_dependencies(${target} holdfast-mutants-${area})
endfunction()
