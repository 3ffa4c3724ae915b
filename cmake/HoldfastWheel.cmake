# What a Python wheel holds, and no more: the package, one shared library for the extension and the command, the kernel compiler. All find each
# other from their own place. bindings/python/build_backend.py builds the target holdfast-wheel, installs it into a folder, and packs that.

set(wheel_targets holdfast-python holdfast-tool holdfast)
if(TARGET holdfast-jit)
  list(APPEND wheel_targets holdfast-jit)
endif()
add_custom_target(holdfast-wheel)
add_dependencies(holdfast-wheel ${wheel_targets})

set_target_properties(holdfast-python PROPERTIES INSTALL_RPATH "$ORIGIN")
set_target_properties(holdfast-tool PROPERTIES INSTALL_RPATH "$ORIGIN/..")
install(TARGETS ${wheel_targets} LIBRARY DESTINATION holdfast RUNTIME DESTINATION holdfast/bin)
if(TARGET holdfast-jit)
  install(FILES ${HOLDFAST_PRELUDES} DESTINATION holdfast)
endif()
install(DIRECTORY "${HOLDFAST_PYTHON_PACKAGE}/" DESTINATION holdfast FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN "py.typed")
# Beside the package: what makes `import mlx.core` work, and the file by which Python calls it.
install(FILES "${PROJECT_BINARY_DIR}/python/holdfast_as_mlx.py" "${PROJECT_BINARY_DIR}/python/holdfast_as_mlx.pth" DESTINATION .)
