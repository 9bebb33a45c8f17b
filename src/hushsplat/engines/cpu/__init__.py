"""The CPU engine: C++17 in native/, bound as _engine; see CMakeLists.txt at the root of the project."""
