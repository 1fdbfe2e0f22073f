# The two words of this build: ff_library for a folder, ff_executable for a command.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(FF_CCACHE ccache)
if(FF_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${FF_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${FF_CCACHE})
endif()

# Flags of our own code only; generated protobuf code gets none of the warnings.
add_library(ff_options INTERFACE)
target_compile_options(ff_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(ff_options INTERFACE -Wno-restrict)  # g++ 12 sees overlaps in "x" + std::string that are none
endif()
if(FF_WERROR)
  target_compile_options(ff_options INTERFACE -Werror)
endif()
target_include_directories(ff_options INTERFACE ${CMAKE_SOURCE_DIR})
if(FF_SANITIZE)
  add_compile_options(-fsanitize=${FF_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${FF_SANITIZE})
endif()

# ff_library(NAME SOURCES a.cc ... DEPS target ... [PRIVATE_DEPS target ...])
function(ff_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ff_options ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
endfunction()

# ff_executable(NAME SOURCES main.cc DEPS target ...): a command, installed into bin/.
function(ff_executable name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ff_options ${ARG_DEPS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  install(TARGETS ${name} RUNTIME)
endfunction()

# ff_proto(NAME file.proto): a library of the generated code; included as "<folder>/file.pb.h" from the root.
function(ff_proto name proto)
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE folder)
  cmake_path(GET proto STEM stem)
  set(out ${CMAKE_BINARY_DIR}/generated)
  set(cc ${out}/${folder}/${stem}.pb.cc)
  set(h ${out}/${folder}/${stem}.pb.h)
  file(MAKE_DIRECTORY ${out}/${folder})
  add_custom_command(OUTPUT ${cc} ${h}
    COMMAND protobuf::protoc --cpp_out=${out} -I ${CMAKE_SOURCE_DIR} ${folder}/${proto}
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${proto} VERBATIM)
  add_library(${name} STATIC ${cc} ${h})
  target_include_directories(${name} SYSTEM PUBLIC ${out})
  target_link_libraries(${name} PUBLIC protobuf::libprotobuf)
endfunction()
