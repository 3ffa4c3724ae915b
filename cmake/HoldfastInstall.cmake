# `cmake --install`: the library, its headers, the command, and a package for
# find_package(holdfast).

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(holdfast_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/holdfast")

install(TARGETS holdfast holdfast-mlx EXPORT holdfastTargets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
                                                 ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/holdfast" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
if(TARGET holdfast-jit)
  install(TARGETS holdfast-jit LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(FILES "${PROJECT_BINARY_DIR}/lib/holdfast-custom-kernel.pch" "${PROJECT_BINARY_DIR}/lib/holdfast-metal-file.pch"
          DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  target_compile_definitions(holdfast PRIVATE HOLDFAST_INSTALL_LIBDIR="${CMAKE_INSTALL_FULL_LIBDIR}")
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/compat/mlx" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/holdfast/compat"
        FILES_MATCHING PATTERN "*.h")
if(TARGET holdfast-tool)
  # Beside a shared library the command finds it from its own place, so the prefix can be moved.
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
