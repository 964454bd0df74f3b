// The V step in double precision: cyclic coordinate descent on rows of V, which minimises v^T G v / 2 - r^T v subject to v >= 0.
//
// Compiled for each LANES and ENTRIES: LANES threads work on a row and hold ENTRIES numbers of v and of its gradient each; number e of
// thread l is entry e LANES + l.

#define SIZE (LANES * ENTRIES)
#define THREADS 128
#define ALL 0xffffffffu

constexpr int ROWS = THREADS / LANES;

// Four numbers, read together.
struct __align__(16) Four {
    double numbers[4];
};

// gradient -= row * value, for the numbers of a thread.
__device__ inline void subtract(const double* row, int lane, double value, double* gradient) {
    const Four* const g = reinterpret_cast<const Four*>(row) + lane;
#pragma unroll
    for (int i = 0; i < ENTRIES / 4; i++) {
        const Four four = g[i * LANES];
#pragma unroll
        for (int j = 0; j < 4; j++) gradient[4 * i + j] -= four.numbers[j] * value;
    }
}

// Moves rows from global to shared memory, or back.
template <bool BACK>
__device__ inline void move(double* global, double* shared, long long first, long long instances, int latent) {
    const long long left = instances - first;
    const int here = left < ROWS ? (int)left : ROWS;
    for (int i = threadIdx.x; i < here * latent; i += THREADS) {
        double& own = shared[i / latent * (latent + 1) + i % latent];
        if (BACK)
            global[first * latent + i] = own;
        else
            own = global[first * latent + i];
    }
}

// V starts from `from` (null: zeros) times `scale`; the result is written to `to`. If `patterns` is null, every instance has pattern 0.
// `grams` has for each pattern the SIZE rows of G, padded with zeros and interleaved by thread: four numbers of the first thread, four
// of the second, and so on, then the next four of the first. SIZE steps follow: the relaxation divided by G_kk, or 0 where entry k
// takes no part. With a tolerance, a row stops changing after a pass in which no entry changed by more than that share of the row's
// largest entry.
extern "C" __global__ void __launch_bounds__(THREADS)
latent_step(double* from, const double* __restrict__ scale, double* right, const double* __restrict__ grams,
            const int* __restrict__ patterns, long long instances, int latent, int passes, double tolerance, double* to) {
    extern __shared__ __align__(16) unsigned char memory[];
    double* const rights = reinterpret_cast<double*>(memory);
    double* const rows = rights + ROWS * (latent + 1);
    const int lane = threadIdx.x % LANES, place = threadIdx.x / LANES;
    const long long first = (long long)blockIdx.x * ROWS;
    const bool there = first + place < instances;
    move<false>(right, rights, first, instances, latent);
    if (from) move<false>(from, rows, first, instances, latent);
    __syncthreads();
    const size_t at_pattern = there && patterns ? (size_t)patterns[first + place] * (SIZE * SIZE + SIZE) : 0;
    const double* const gram = grams + at_pattern;
    const double* const steps = gram + SIZE * SIZE;
    double v[ENTRIES], gradient[ENTRIES];
#pragma unroll
    for (int e = 0; e < ENTRIES; e++) {
        const int k = e * LANES + lane, at = place * (latent + 1) + k;
        const bool own = there && k < latent;
        v[e] = own && from ? rows[at] * scale[k] : 0;
        gradient[e] = own ? rights[at] : 0;
    }
    if (from) {
#pragma unroll
        for (int e = 0; e < ENTRIES; e++)
#pragma unroll 1
            for (int owner = 0; owner < LANES; owner++) {
                const double value = LANES == 1 ? v[e] : __shfl_sync(ALL, v[e], owner, LANES);
                subtract(gram + (e * LANES + owner) * SIZE, lane, value, gradient);
            }
    }
    double active = there ? 1 : 0;
    for (int pass = 0; pass < passes; pass++) {
        double change = 0, largest = 0;
#pragma unroll
        for (int e = 0; e < ENTRIES; e++) {
            if (e * LANES >= latent) continue;
#pragma unroll 1
            for (int owner = 0; owner < LANES; owner++) {
                const int k = e * LANES + owner;
                const double stepped = v[e] + gradient[e] * (__ldg(steps + k) * active);
                const double moved = stepped > 0 ? stepped : 0;
                const double difference = moved - v[e];
                if (lane == owner) {
                    v[e] = moved;
                    change = fmax(change, fabs(difference));
                    largest = fmax(largest, moved);
                }
                const double step = LANES == 1 ? difference : __shfl_sync(ALL, difference, owner, LANES);
                subtract(gram + k * SIZE, lane, step, gradient);
            }
        }
        if (tolerance > 0) {
#pragma unroll
            for (int mask = LANES / 2; mask > 0; mask /= 2) {
                change = fmax(change, __shfl_xor_sync(ALL, change, mask, LANES));
                largest = fmax(largest, __shfl_xor_sync(ALL, largest, mask, LANES));
            }
            if (!(change > tolerance * largest)) active = 0;
            if (!__any_sync(ALL, active != 0)) break;
        }
    }
#pragma unroll
    for (int e = 0; e < ENTRIES; e++) {
        const int k = e * LANES + lane;
        if (there && k < latent) rows[place * (latent + 1) + k] = v[e];
    }
    __syncthreads();
    move<true>(to, rows, first, instances, latent);
}
