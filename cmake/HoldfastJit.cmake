# libholdfast-jit: the MSL front-end and the widening compiler, with clang and LLVM 19 behind them. A module that the
# library loads when the first kernel has to be compiled; it uses headers of the library, none of its code.
#
# Its sources: src/msl/frontend, src/devices/cpu/jit/compiler and src/devices/cuda/compiler. Only they include LLVM.

find_package(LLVM 19.1 QUIET CONFIG HINTS /usr/lib/llvm-19)
if(LLVM_FOUND)
  if(HOLDFAST_STATIC_DEPENDENCIES)
    # The archives of clang and LLVM, all of them: the linker takes what is referred to.
    file(GLOB HOLDFAST_CLANG_CPP "${LLVM_LIBRARY_DIR}/libclang[A-Z]*.a")
  else()
    find_library(HOLDFAST_CLANG_CPP clang-cpp HINTS "${LLVM_LIBRARY_DIR}" NO_DEFAULT_PATH)
  endif()
  find_path(HOLDFAST_CLANG_INCLUDE clang/Frontend/CompilerInstance.h HINTS ${LLVM_INCLUDE_DIRS} NO_DEFAULT_PATH)
endif()
if(LLVM_FOUND AND HOLDFAST_CLANG_CPP AND HOLDFAST_CLANG_INCLUDE)
  set(HOLDFAST_HAVE_JIT ON)
else()
  set(HOLDFAST_HAVE_JIT OFF)
  message(STATUS "holdfast: no clang and LLVM 19 (llvm-19-dev libclang-19-dev libclang-cpp19-dev): "
                 "fast::metal_kernel is left out")
endif()

# The objects are a target of their own because the tests of single passes (tests/jit) link them directly.
function(holdfast_add_jit)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/msl/frontend/*.cpp"
       "${PROJECT_SOURCE_DIR}/src/devices/cpu/jit/compiler/*.cpp" "${PROJECT_SOURCE_DIR}/src/devices/cuda/compiler/*.cpp")
  if(NOT sources)
    return()
  endif()
  # The headers that kernels include, as bytes in the module.
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/msl/include/*")
  set(embedded "${PROJECT_BINARY_DIR}/generated/embedded_headers.cpp")
  add_custom_command(
    OUTPUT "${embedded}"
    COMMAND "${CMAKE_COMMAND}" "-DSOURCE=${PROJECT_SOURCE_DIR}/src/msl" "-DOUTPUT=${embedded}" -P
            "${PROJECT_SOURCE_DIR}/cmake/embed_headers.cmake"
    DEPENDS ${headers} "${PROJECT_SOURCE_DIR}/src/msl/intrinsics.def" "${PROJECT_SOURCE_DIR}/cmake/embed_headers.cmake"
    COMMENT "Embedding the kernel headers" VERBATIM)
  list(APPEND sources "${embedded}")
  add_library(holdfast-jit-objects OBJECT ${sources})
  holdfast_build_settings(holdfast-jit-objects)
  # Most of the time goes into the headers of clang and LLVM: eight files share one reading of them.
  set_target_properties(holdfast-jit-objects PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE BATCH UNITY_BUILD_BATCH_SIZE 8)
  # At -O1 g++ inlines LLVM's operator new of a class but not its operator delete, and takes them for a mismatch. In clang's headers it finds a
  # null `this` behind a test of the lowest bit, which rules it out.
  target_compile_options(holdfast-jit-objects PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-mismatched-new-delete -Wno-nonnull>)
  target_include_directories(holdfast-jit-objects PRIVATE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")
  target_include_directories(holdfast-jit-objects SYSTEM PUBLIC ${LLVM_INCLUDE_DIRS} "${HOLDFAST_CLANG_INCLUDE}")
  separate_arguments(llvm_definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
  target_compile_definitions(holdfast-jit-objects PUBLIC ${llvm_definitions})
  if(HOLDFAST_STATIC_DEPENDENCIES)
    file(GLOB llvm_archives "${LLVM_LIBRARY_DIR}/libLLVM*.a")
    target_link_libraries(holdfast-jit-objects PUBLIC -Wl,--start-group ${HOLDFAST_CLANG_CPP} ${llvm_archives} -Wl,--end-group
                                                      "${HOLDFAST_ZSTD}" ZLIB::ZLIB ${CMAKE_DL_LIBS})
  else()
    target_link_libraries(holdfast-jit-objects PUBLIC "${HOLDFAST_CLANG_CPP}" LLVM)
    target_link_directories(holdfast-jit-objects PUBLIC "${LLVM_LIBRARY_DIR}")
  endif()

  # The version of the compiler, which the library knows without loading it.
  set(version_folder "${PROJECT_BINARY_DIR}/generated/jit")
  add_custom_target(
    holdfast-jit-version
    COMMAND "${CMAKE_COMMAND}" "-DSOURCE_DIR=${PROJECT_SOURCE_DIR}" "-DLLVM_VERSION=${LLVM_PACKAGE_VERSION}"
            "-DOUTPUT=${version_folder}" -P "${PROJECT_SOURCE_DIR}/cmake/HoldfastJitVersion.cmake"
    BYPRODUCTS "${version_folder}/holdfast_jit_version.h" "${version_folder}/holdfast_aot_version.h"
    COMMENT "Version of the kernel compiler")
  foreach(user holdfast holdfast-jit-objects)
    target_include_directories(${user} PRIVATE "${version_folder}")
    target_compile_definitions(${user} PRIVATE HOLDFAST_HAVE_JIT=1)
    add_dependencies(${user} holdfast-jit-version)
  endforeach()
  target_link_libraries(holdfast PRIVATE ${CMAKE_DL_LIBS})

  # Only what the library and holdfast-prelude look for is visible outside of the module: a process may have another LLVM, too, and what nothing
  # refers to is dropped.
  add_library(holdfast-jit MODULE)
  holdfast_build_settings(holdfast-jit)
  set(exports "${PROJECT_SOURCE_DIR}/src/devices/cpu/jit/compiler/exports.map")
  target_link_libraries(holdfast-jit PRIVATE holdfast-jit-objects)
  target_link_options(holdfast-jit PRIVATE -Wl,--gc-sections -Wl,-z,defs "-Wl,--version-script=${exports}")
  set_target_properties(holdfast-jit PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib" LINKER_LANGUAGE CXX LINK_DEPENDS
                                                                                                      "${exports}")

  # The precompiled preludes of kernels, beside the module, which writes them.
  add_executable(holdfast-prelude "${PROJECT_SOURCE_DIR}/tools/prelude/main.cpp")
  holdfast_build_settings(holdfast-prelude)
  target_link_libraries(holdfast-prelude PRIVATE ${CMAKE_DL_LIBS})
  add_dependencies(holdfast-jit holdfast-prelude)
  set(HOLDFAST_PRELUDES "${PROJECT_BINARY_DIR}/lib/holdfast-custom-kernel.pch" "${PROJECT_BINARY_DIR}/lib/holdfast-metal-file.pch"
      PARENT_SCOPE)
  add_custom_command(
    TARGET holdfast-jit POST_BUILD
    COMMAND holdfast-prelude "$<TARGET_FILE:holdfast-jit>" "${PROJECT_BINARY_DIR}/lib"
    COMMENT "Precompiling the kernel headers" VERBATIM)

  # Compiles the library's own kernels ahead of time, and is not linked with the library, which they become a part of (HoldfastKernels.cmake).
  file(GLOB aot_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tools/aot/*.cpp")
  foreach(name base/lock_order base/machine devices/image_writer devices/cpu/jit/kernel_format devices/cuda/compiled_kernel
               exec/disk_cache exec/kernel_file msl/interface_format)
    list(APPEND aot_sources "${PROJECT_SOURCE_DIR}/src/${name}.cpp")
  endforeach()
  add_executable(holdfast-aot ${aot_sources})
  holdfast_build_settings(holdfast-aot)
  set_target_properties(holdfast-aot PROPERTIES UNITY_BUILD OFF)
  target_include_directories(holdfast-aot PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include"
                                                  "${version_folder}")
  if(HOLDFAST_STATIC_DEPENDENCIES)
    target_link_libraries(holdfast-aot PRIVATE Threads::Threads "${HOLDFAST_ZSTD}" ${CMAKE_DL_LIBS})
  else()
    target_link_libraries(holdfast-aot PRIVATE Threads::Threads zstd ${CMAKE_DL_LIBS})
  endif()
  add_dependencies(holdfast-aot holdfast-jit-version)
endfunction()
