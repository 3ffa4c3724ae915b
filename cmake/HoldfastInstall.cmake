# `cmake --install`: the library, its headers, the command, and a package for
# find_package(holdfast). The target holdfast-package builds what it needs.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(holdfast_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/holdfast")
add_custom_target(holdfast-package)

# install(TARGETS …) of a target, which becomes a part of holdfast-package. Where it is not built yet, the installation says what to do before
# it copies anything.
function(holdfast_install target)
  add_dependencies(holdfast-package ${target})
  install(CODE "if(NOT EXISTS \"$<TARGET_FILE:${target}>\")
    message(FATAL_ERROR \"holdfast: $<TARGET_FILE_NAME:${target}> is not built yet; first: \"
                        \"cmake --build ${PROJECT_BINARY_DIR} --target holdfast-package\")
  endif()")
endfunction()

set(holdfast_targets holdfast holdfast-mlx holdfast-lm)
foreach(target holdfast-jit holdfast-tool)
  if(TARGET ${target})
    list(APPEND holdfast_targets ${target})
  endif()
endforeach()
foreach(target IN LISTS holdfast_targets)
  holdfast_install(${target})
endforeach()

install(TARGETS holdfast holdfast-mlx holdfast-lm EXPORT holdfastTargets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
                                                 ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/holdfast" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
if(TARGET holdfast-jit)
  install(TARGETS holdfast-jit LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(FILES ${HOLDFAST_PRELUDES} DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  # A program with the static library in it looks for the compiler in its own run path (compiler_loader.cpp): the prefix that it was linked from.
  target_link_options(holdfast INTERFACE "$<INSTALL_INTERFACE:LINKER:-rpath,$<INSTALL_PREFIX>/${CMAKE_INSTALL_LIBDIR}>")
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/compat/mlx" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/holdfast/compat"
        FILES_MATCHING PATTERN "*.h")
if(TARGET holdfast-tool)
  # The command finds the compiler, and a shared library, from its own place, so the prefix can be moved.
  file(RELATIVE_PATH holdfast_bin_to_lib "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBDIR}")
  set_target_properties(holdfast-tool PROPERTIES INSTALL_RPATH "$ORIGIN/${holdfast_bin_to_lib}"
                                                 INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS holdfast-tool RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()

install(EXPORT holdfastTargets NAMESPACE holdfast:: DESTINATION "${holdfast_package_dir}")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/holdfastConfig.cmake.in"
                              "${PROJECT_BINARY_DIR}/holdfastConfig.cmake" INSTALL_DESTINATION "${holdfast_package_dir}")
# Before 1.0 any minor version may break its users.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/holdfastConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/holdfastConfig.cmake" "${PROJECT_BINARY_DIR}/holdfastConfigVersion.cmake"
        DESTINATION "${holdfast_package_dir}")

# find_package(MLX), for projects that were written for it.
set(mlx_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/MLX")
set(HOLDFAST_COMPAT_DIR "${CMAKE_INSTALL_INCLUDEDIR}/holdfast/compat")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/MLXConfig.cmake.in" "${PROJECT_BINARY_DIR}/MLXConfig.cmake"
                              INSTALL_DESTINATION "${mlx_package_dir}" PATH_VARS HOLDFAST_COMPAT_DIR CMAKE_INSTALL_INCLUDEDIR)
# The version of MLX's interface (compat/mlx/version.h).
write_basic_package_version_file("${PROJECT_BINARY_DIR}/MLXConfigVersion.cmake" VERSION 0.32.4 COMPATIBILITY AnyNewerVersion)
install(FILES "${PROJECT_BINARY_DIR}/MLXConfig.cmake" "${PROJECT_BINARY_DIR}/MLXConfigVersion.cmake" "${PROJECT_SOURCE_DIR}/cmake/join_kernels.cmake"
        DESTINATION "${mlx_package_dir}")
install(FILES "${PROJECT_SOURCE_DIR}/cmake/mlx_extension.cmake" DESTINATION "${mlx_package_dir}" RENAME extension.cmake)
