# Everything comes from Debian's packages; tools/install-deps.sh installs them.
find_package(Threads REQUIRED)
find_package(Protobuf REQUIRED)   # before ONNX, whose config needs its targets
find_package(ONNX CONFIG REQUIRED)
find_package(MPI REQUIRED COMPONENTS C)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(dnnl CONFIG REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(ZLIB REQUIRED)
find_package(pugixml REQUIRED)
find_path(HWLOC_INCLUDE_DIR hwloc.h REQUIRED)
find_library(HWLOC_LIBRARY hwloc REQUIRED)
add_library(hwloc::hwloc UNKNOWN IMPORTED)
set_target_properties(hwloc::hwloc PROPERTIES
  IMPORTED_LOCATION ${HWLOC_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${HWLOC_INCLUDE_DIR})

# Debian 12's ONNX exports its targets without a namespace, Debian 13's with one.
foreach(target onnx onnx_proto)
  if(TARGET ONNX::${target} AND NOT TARGET ${target})
    add_library(${target} INTERFACE IMPORTED GLOBAL)
    target_link_libraries(${target} INTERFACE ONNX::${target})
  endif()
endforeach()
