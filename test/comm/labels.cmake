# Read by ctest, behind the list of test cases that the discovery wrote.
foreach(test IN LISTS test_comm_TESTS)
  set_tests_properties("${test}" PROPERTIES LABELS "unit;conformance")
endforeach()
