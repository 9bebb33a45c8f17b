"""The CPU engine in C++17; see CMakeLists.txt at the root of the project."""
