# The C library: libvllm.so.<ABI> and libvllm.a, what is installed, pkg-config and CMake packages.
if(VLLM_SANITIZE OR VLLM_FUZZ)
  return()  # their run-time libraries belong to programs; the tests link vllm_capi itself
endif()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

file(STRINGS ${CMAKE_SOURCE_DIR}/include/vllm.h abi REGEX "^#define VLLM_ABI_VERSION [0-9]+$")
string(REGEX REPLACE "[^0-9]+" "" VLLM_ABI_VERSION "${abi}")
# The version script keeps everything but vllm_* inside: our exceptions and their type information too, so that two copies in
# one process do not meet.
add_library(vllm_shared SHARED $<TARGET_OBJECTS:vllm_capi>)
target_link_libraries(vllm_shared PRIVATE vllm_engine)
target_link_options(vllm_shared PRIVATE "LINKER:--version-script=${CMAKE_SOURCE_DIR}/src/capi/exports.map" LINKER:-z,defs)
set_target_properties(vllm_shared PROPERTIES OUTPUT_NAME vllm EXPORT_NAME vllm LINKER_LANGUAGE CXX
  VERSION ${VLLM_ABI_VERSION}.${PROJECT_VERSION} SOVERSION ${VLLM_ABI_VERSION}
  LINK_DEPENDS ${CMAKE_SOURCE_DIR}/src/capi/exports.map)

# One archive of all objects: an embedder links one file, and the libraries that it stands on.
set(objects)
foreach(part capi engine model text load vt quant base)
  list(APPEND objects $<TARGET_OBJECTS:vllm_${part}>)
endforeach()
add_library(vllm_static STATIC ${objects})
target_link_libraries(vllm_static INTERFACE fmt::fmt spdlog::spdlog prometheus-cpp::core OpenSSL::Crypto simdjson::simdjson
  PkgConfig::PCRE2 PkgConfig::UTF8PROC Threads::Threads stdc++ m)
set_target_properties(vllm_static PROPERTIES OUTPUT_NAME vllm EXPORT_NAME vllm_static LINKER_LANGUAGE CXX)

foreach(library vllm_shared vllm_static)
  target_include_directories(${library} INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()

# From the folder of the .pc file up to the prefix: what is installed may be moved.
file(RELATIVE_PATH VLLM_PC_TO_PREFIX /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
configure_file(${CMAKE_SOURCE_DIR}/cmake/vllm.pc.in ${CMAKE_BINARY_DIR}/vllm.pc @ONLY)
set(VLLM_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/vllm)
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/vllmConfig.cmake.in ${CMAKE_BINARY_DIR}/vllmConfig.cmake
  INSTALL_DESTINATION ${VLLM_PACKAGE_DIR})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/vllmConfigVersion.cmake VERSION ${PROJECT_VERSION}
  COMPATIBILITY SameMinorVersion)

install(TARGETS vllm_shared EXPORT vllmTargets COMPONENT library)
install(TARGETS vllm_static EXPORT vllmStaticTargets COMPONENT library)
install(EXPORT vllmTargets NAMESPACE vllm:: DESTINATION ${VLLM_PACKAGE_DIR} COMPONENT library)
install(EXPORT vllmStaticTargets NAMESPACE vllm:: DESTINATION ${VLLM_PACKAGE_DIR} COMPONENT library)
install(FILES ${CMAKE_BINARY_DIR}/vllmConfig.cmake ${CMAKE_BINARY_DIR}/vllmConfigVersion.cmake
  DESTINATION ${VLLM_PACKAGE_DIR} COMPONENT library)
install(FILES ${CMAKE_BINARY_DIR}/vllm.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
install(FILES ${CMAKE_SOURCE_DIR}/include/vllm.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
install(TARGETS vllm COMPONENT program)
