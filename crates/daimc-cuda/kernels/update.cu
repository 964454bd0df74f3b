// The V step in single precision for given r: some passes of coordinate descent.
//
// Compiled for each LANES and TILES: 8 TILES columns of V, at least `latent`. Launch: 256 threads, any number of blocks. Bytes of
// shared memory: 4 (ROWS (WIDTH + 4) + (WIDTH > 128 ? 0 : SIZE of a table)), with ROWS = 256 / LANES.
//
//   from, to    V, doubles [instances][latent], before and after; may be equal
//   scale       floats [latent]: V starts from `from` times these
//   right       r, doubles [instances][latent]
//   tables      of each pattern, see descent.cuh; their offsets are ignored
//   patterns    the pattern of each instance; null: 0
//   packed      floats [instances][width][parts]: V packed for `gather`, with `width` columns and 1 or 2 parts; or null

#include "common.cuh"
#include "descent.cuh"

constexpr int THREADS = 256;
constexpr int WIDTH = 8 * TILES;
constexpr int ENTRIES = WIDTH / LANES;
constexpr int ROWS = THREADS / LANES;
constexpr int STRIDE = WIDTH + 4;

using Own = Table<TILES>;

// Whether a table fits in shared memory.
constexpr bool NEAR = WIDTH <= 128;

extern "C" __global__ void __launch_bounds__(THREADS, LANES == 2 ? 2 : 3)
update(const double* from, const float* __restrict__ scale, const double* __restrict__ right, const float* __restrict__ tables,
       const int* __restrict__ patterns, long long instances, int latent, int passes, double* to, float* __restrict__ packed,
       int width, int parts) {
    extern __shared__ __align__(16) float shared[];
    const int entry = threadIdx.x % LANES, place = threadIdx.x / LANES;
    float* const v = shared + place * STRIDE;
    float* const near = shared + ROWS * STRIDE;
    const bool is_near = NEAR && !patterns;
    if (is_near)
        for (int i = threadIdx.x; i < Own::SIZE; i += THREADS) near[i] = tables[i];
    __syncthreads();
    // Warps run independently from here on.
    for (long long first = (long long)blockIdx.x * ROWS + place / (32 / LANES) * (32 / LANES); first < instances;
         first += (long long)gridDim.x * ROWS) {
        const long long instance = first + place % (32 / LANES);
        const bool there = instance < instances;
        float gradient[ENTRIES];
        const float* const far = tables + (there && patterns ? (size_t)patterns[instance] * Own::SIZE : 0);
#pragma unroll
        for (int e = 0; e < ENTRIES; e++) {
            const int k = e * LANES + entry;
            const bool own = there && k < latent;
            gradient[e] = own ? (float)right[instance * latent + k] * far[Own::STEPS + k] : 0;
            v[k] = own ? (float)from[instance * latent + k] * scale[k] : 0;
        }
        __syncwarp();
        if (is_near)
            descend<LANES, TILES, 1>(near, v, gradient, latent, passes);
        else
            descend<LANES, TILES, 1>(far, v, gradient, latent, passes);
        __syncwarp();
        for (int k = entry; there && k < latent; k += LANES) to[instance * latent + k] = v[k];
        for (int k = entry; there && packed && k < width; k += LANES) {
            const float value = k < WIDTH ? v[k] : 0;
            float* const at = packed + (instance * width + k) * parts;
            unsigned high, low;
            split(value, high, low);
            if (parts == 2)
                *reinterpret_cast<uint2*>(at) = make_uint2(high, low);
            else
                *at = __uint_as_float(rounded(value));
        }
        __syncwarp();
    }
}
