// Asynchronous copies into shared memory, and tensor core products.

#ifndef COMMON_CUH
#define COMMON_CUH

// Begins to copy 16 bytes from global to shared memory, or to write zeros unless `there`.
template <typename T>
__device__ inline void copy(T* to, const T* from, bool there) {
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(there ? 16 : 0) : "memory");
}

__device__ inline void copies_begun() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most N groups of copies are pending.
template <int N>
__device__ inline void copies_done() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

// Rounds a float to TF32: tensor cores read its upper 19 bits.
__device__ inline unsigned rounded(float value) { return __float_as_uint(value) + 0x1000; }

// Splits a float into two TF32 numbers, whose sum differs from it by about 2^-22 of its value.
__device__ inline void split(float value, unsigned& high, unsigned& low) {
    high = rounded(value) & 0xffffe000;
    low = rounded(value - __uint_as_float(high));
}

// c += a b for tiles of 16 x 8 x 8 floats and 8 x 8 x 4 doubles.
__device__ inline void tensor(float* c, const unsigned* a, const unsigned* b) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ inline void tensor(double* c, double a, double b) {
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(c[0]), "+d"(c[1])
        : "d"(a), "d"(b));
}

#endif
