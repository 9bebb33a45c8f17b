#include "interpreter.h"

#include <atomic>
#include <chrono>
#include <thread>

#if !defined(_WIN32)
#include <pthread.h>
#endif

namespace nb = nanobind;

namespace hush {
namespace {

std::atomic<int> away{0};                   // calls that will want the lock back
std::atomic<unsigned long> exit_thread{0};  // the one that shuts the interpreter down; 0: none yet

void nap() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

#if !defined(_WIN32)
[[maybe_unused]] const int fork_handler = pthread_atfork(nullptr, nullptr, [] { away = 0; });  // only this thread lives
#endif

}  // namespace

GilReleased::GilReleased() {
    const unsigned long exiting = exit_thread;
    if (exiting && exiting != PyThread_get_thread_ident()) {  // too late: sleep until the process is gone
        PyEval_SaveThread();
        for (;;) nap();
    }
    ++away;
    state_ = PyEval_SaveThread();
}

GilReleased::~GilReleased() {
    PyEval_RestoreThread(state_);
    --away;
}

void wait_at_exit() {
    nb::module_::import_("atexit").attr("register")(nb::cpp_function([] {
        exit_thread = PyThread_get_thread_ident();
        PyThreadState* state = PyEval_SaveThread();
        while (away) nap();
        PyEval_RestoreThread(state);
    }));
}

}  // namespace hush
