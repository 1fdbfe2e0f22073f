// Plain loops compiled once for each instruction set and chosen at load: write a function whose inner loop is
// simple, say FF_TARGET_CLONES before it, and the compiler does the rest. Nothing here is needed for
// correctness.
//
//   FF_TARGET_CLONES void scale(const float* x, float* y, int64_t n, float a) { for (...) y[i] = a * x[i]; }
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FF_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(undefined_behavior_sanitizer)
#define FF_SANITIZED 1
#endif
#endif

// Levels of the architecture, not names of processors: a name fits that one alone, and all others get the
// default. Sanitizers run before the resolver's relocations are there; clang knows the attribute only in
// part.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(FF_SANITIZED)
#define FF_TARGET_CLONES \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), optimize("O3")))
#else
#define FF_TARGET_CLONES
#endif
