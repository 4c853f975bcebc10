# ThreadSanitizer does not follow Asio's fences, which g++ warns of. It follows the mutexes of the same queues.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND VLLM_SANITIZE MATCHES "thread")
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src/server/http/http_server.cc PROPERTIES COMPILE_OPTIONS -Wno-tsan)
endif()
