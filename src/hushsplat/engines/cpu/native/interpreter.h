// How the engine leaves the Python interpreter to itself while it works.
#pragma once

#include <nanobind/nanobind.h>

namespace hush {

// The interpreter's lock, released for as long as this lives. When the interpreter shuts down, it first waits for
// those who will want the lock back: it would end their threads inside of C++, and that ends the process (SIGABRT).
class GilReleased {
public:
    GilReleased();
    ~GilReleased();
    GilReleased(const GilReleased&) = delete;
    GilReleased& operator=(const GilReleased&) = delete;

private:
    PyThreadState* state_;
};

// Makes the interpreter wait; once, when the module is loaded.
void wait_at_exit();

}  // namespace hush
