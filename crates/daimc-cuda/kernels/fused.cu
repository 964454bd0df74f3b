// A whole sweep with dense rows of floats that are read once: r_j = x_j U - o, the V step, and C = sum_j x_j v_j^T.
//
// Compiled for each SPLIT (3: floats as sums of two parts, 1: floats rounded to 11 bits), TILES, GROUPS and UNITS. Here
//
//   WIDTH = 8 TILES                columns of V, at least `latent`
//   ROWS = 16 GROUPS               rows of a tile, which is in shared memory while a block works on it; GROUPS is 1 or 2
//   256 UNITS / GROUPS             columns of X, padding included, at most
//
// Launch: 256 threads; any number of blocks, of which block b takes tiles b, b + blocks, ..., so that results depend on the number
// of blocks but not on the run. Best are as many blocks as multiprocessors, twice that with UNITS 1, but no more than tiles.
// Bytes of shared memory, with PARTS = 2 if SPLIT is 3 and 1 otherwise:
//
//   4 (12288 UNITS + 128 (TILES odd ? WIDTH : WIDTH + 8) + ROWS WIDTH PARTS + WIDTH^2 + 2 WIDTH + ROWS (WIDTH + 4))
//   + 8 (WIDTH^2 + ROWS WIDTH)
//
// Columns of X stand in units of 32, in the order of the basis. There are two ways to say where they are:
//
//   `columns` null   one view with a row for each instance: `x`, from a row to the next `stride` numbers, a multiple of 4, of which
//                    `width`, a multiple of 4 and at most `stride`, are read. units = ceil(width / 32).
//   otherwise        any views, each padded to a multiple of 16 columns: two descriptors of 16 columns for each unit. `x` points at
//                    the first of these columns of row 0, `rows` maps instances to rows, -1 where there is none (null: the row is
//                    the instance), `stride` is as above, and `count`, a multiple of 4 and at most 16, how many columns are read; 0
//                    for padding. The argument `x` may be any address of global memory.
//
// All pointers are multiples of 16 bytes. Numbers that are read beyond the columns of a view must be finite.
//
//   basis           floats [32 units][WIDTH], zeros where there is no column of X or of V
//   tables          floats for each pattern: G, symmetric, as [WIDTH / 4][WIDTH][4], number [a][l][c] being G of (4 a + c, l); then
//                   WIDTH steps, 1/G_kk or 0 where an entry takes no part; then WIDTH offsets o. Zeros beyond `latent`.
//   exact           doubles for each pattern: G as [WIDTH / 2][WIDTH][2], number [a][l][c] being G of (2 a + c, l)
//   patterns        the pattern of each instance; null: 0
//   from, to        V, doubles [instances][latent], before and after; may be the same
//   scale           floats [latent]: V starts from `from` times these
//   passes          of coordinate descent; with none V is only scaled
//   sums_of_parts   doubles [blocks GROUPS][32 units][WIDTH], zeros before the launch, for `add_parts`: parts of C, padded

#include "common.cuh"

#define ALL 0xffffffffu

constexpr int WARPS = 8;
constexpr int THREADS = 32 * WARPS;
constexpr int STAGES = 3;
constexpr int WIDTH = 8 * TILES;
constexpr int PARTS = SPLIT == 3 ? 2 : 1;

// Rows of a tile, and the warps that share its columns.
constexpr int ROWS = 16 * GROUPS;
constexpr int ACROSS = WARPS / GROUPS;

// Numbers of a unit, 16 rows by 32 columns of X, and of a tile.
constexpr int UNIT = 16 * 32;
constexpr int TILE = WARPS * UNITS * UNIT;

// Strides in shared memory such that the lanes of a warp meet different banks.
constexpr int RIGHT_STRIDE = TILES % 2 ? WIDTH : WIDTH + 8;
constexpr int V_STRIDE = WIDTH + 4;

// Threads for a row in the V step, and entries of v that each holds: number e of thread l is entry e LANES + l.
constexpr int LANES = 8;
constexpr int ENTRIES = TILES;
constexpr int STEPPING = LANES * ROWS;

// Numbers of a table: G, its steps and the offset.
constexpr int GRAM = WIDTH * WIDTH;
constexpr int TABLE = GRAM + 2 * WIDTH;

// Tiles after which sums in floats are added to those in doubles.
constexpr int FLUSH = 256;

struct Columns {
    const float* x;
    const int* rows;
    int stride;
    int count;
};

// What tensor cores take of a float as it is, and what is left of it.
__device__ inline float large(float value) {
    return __uint_as_float(PARTS == 2 ? __float_as_uint(value) & 0xffffe000 : rounded(value));
}
__device__ inline float small(float value) { return value - __uint_as_float(__float_as_uint(value) & 0xffffe000); }

// The same, made anew each time rather than kept in a register.
__device__ inline float small_again(float value) {
    float cut;
    asm volatile("and.b32 %0, %1, 0xffffe000;" : "=f"(cut) : "f"(value));
    return value - cut;
}

// c += a b, of the parts of floats.
__device__ inline void multiply(float* c, const float* a, const float* b) {
    const unsigned left[4] = {__float_as_uint(a[0]), __float_as_uint(a[1]), __float_as_uint(a[2]), __float_as_uint(a[3])};
    const unsigned right[2] = {__float_as_uint(b[0]), __float_as_uint(b[1])};
    tensor(c, left, right);
}

__device__ inline void multiply(float* c, const float* a, const float* a_rest, const float* b, const float* b_rest) {
    if (PARTS == 2) {
        multiply(c, a, b_rest);
        multiply(c, a_rest, b);
    }
    multiply(c, a, b);
}

__device__ inline float4 four(const float* from) { return *reinterpret_cast<const float4*>(from); }

extern "C" __global__ void __launch_bounds__(THREADS, UNITS == 1 ? 2 : 1)
fused(const float* __restrict__ x, long long stride, int width, const Columns* __restrict__ columns, int units,
      const float* __restrict__ basis, const float* __restrict__ tables, const double* __restrict__ exact,
      const int* __restrict__ patterns, const double* from, const float* __restrict__ scale, double* to, long long instances,
      int latent, int passes, double* __restrict__ sums_of_parts) {
    extern __shared__ __align__(16) unsigned char shared[];
    float* const tiles = reinterpret_cast<float*>(shared);
    float* const rights = tiles + STAGES * TILE;
    float* const weights = rights + WARPS * 16 * RIGHT_STRIDE;
    float* const table = weights + ROWS * WIDTH * PARTS;
    float* const rows = table + TABLE;
    double* const doubles = reinterpret_cast<double*>(rows + ROWS * V_STRIDE);
    double* const exact_rows = doubles + GRAM;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, member = lane % 4;
    const int across = warp % ACROSS, high = warp / ACROSS;
    const long long all = (instances + ROWS - 1) / ROWS;
    const int count = blockIdx.x < all ? (int)((all - blockIdx.x + gridDim.x - 1) / gridDim.x) : 0;
    const auto first_of = [&](int i) { return (blockIdx.x + (long long)i * gridDim.x) * ROWS; };

    // Copies the columns of this warp of tile i. Pieces of 16 bytes change places within a row of a unit such that both products
    // meet different banks.
    const auto load = [&](int i) {
        if (i >= count) return;
        const int row = lane / 8, piece = lane % 8;
        const long long first = first_of(i) + 16 * high + row;
        float* const place = tiles + i % STAGES * TILE + warp * UNITS * UNIT + row * 32 + (piece ^ (row % 2 * 4 + row / 2 * 2)) * 4;
        if (!columns) {
            const int column = 32 * across + 4 * piece;
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const bool there = first + 4 * j < instances;
                const float* const own = there ? x + (first + 4 * j) * stride + column : x;
                const int end = there ? width - column : 0;
#pragma unroll
                for (int q = 0; q < UNITS; q++)
                    copy(place + q * UNIT + j * 128, own + 32 * ACROSS * q, 32 * ACROSS * q < end);
            }
            return;
        }
#pragma unroll 1
        for (int q = 0; q < UNITS && q * ACROSS + across < units; q++) {
            const Columns own = columns[2 * (q * ACROSS + across) + piece / 4];
            const bool there = piece % 4 * 4 < own.count;
#pragma unroll
            for (int j = 0; j < 4; j++) {
                long long at = there && first + 4 * j < instances ? first + 4 * j : -1;
                if (own.rows && at >= 0) at = own.rows[at];
                copy(place + q * UNIT + j * 128, at >= 0 ? own.x + at * own.stride + piece % 4 * 4 : x, at >= 0);
            }
        }
    };

    // The V step of a row: LANES threads hold its gradient.
    const int place = threadIdx.x / LANES, entry = threadIdx.x % LANES;
    float* const v = rows + place * V_STRIDE;
    double* const exact_v = exact_rows + place * WIDTH;
    const int used = (latent + 3) / 4;
    double held[ENTRIES];
    const auto fetch = [&](int i) {
        const long long instance = first_of(i) + place;
#pragma unroll
        for (int e = 0; e < ENTRIES; e++) {
            const int k = e * LANES + entry;
            held[e] = i < count && instance < instances && k < latent ? from[instance * latent + k] : 0;
        }
    };
    const auto descend = [&](const float* gram, const double* exact_gram) {
        // The first gradient, in which much cancels, is made in double precision.
        double begin[ENTRIES], more[ENTRIES];
        float gradient[ENTRIES];
#pragma unroll
        for (int e = 0; e < ENTRIES; e++) {
            const int k = e * LANES + entry;
            begin[e] = more[e] = 0;
            const float* const right = rights + (place / 16 * ACROSS * 16 + place % 16) * RIGHT_STRIDE + k;
            float sums[ACROSS];
#pragma unroll
            for (int other = 0; other < ACROSS; other++) sums[other] = right[other * 16 * RIGHT_STRIDE];
#pragma unroll
            for (int distance = ACROSS / 2; distance > 0; distance /= 2)
#pragma unroll
                for (int other = 0; other < distance; other++) sums[other] += sums[other + distance];
            begin[e] = (double)sums[0] - (double)gram[GRAM + WIDTH + k];
        }
#pragma unroll 2
        for (int k = 0; k < 4 * used; k += 2) {
            const double2 value = *reinterpret_cast<const double2*>(exact_v + k);
#pragma unroll
            for (int e = 0; e < ENTRIES; e++) {
                const double2 g = reinterpret_cast<const double2*>(exact_gram)[k / 2 * WIDTH + e * LANES + entry];
                begin[e] -= g.x * value.x;
                more[e] += g.y * value.y;
            }
        }
#pragma unroll
        for (int e = 0; e < ENTRIES; e++) gradient[e] = (float)(begin[e] - more[e]);
#pragma unroll 1
        for (int pass = 0; pass < passes; pass++) {
            // Four entries at a time, whose gradient and new values all threads of a row have.
#pragma unroll 1
            for (int k = 0; k < 4 * used; k += 4) {
                const float4 old = four(v + k), step = four(gram + GRAM + k);
                const float* const square = gram + (k * WIDTH + 4 * k);
                const float4 second = four(square + 4), third = four(square + 8), fourth = four(square + 12);
                float own = gradient[0];
#pragma unroll
                for (int e = 1; e < ENTRIES; e++)
                    if (k >= e * LANES) own = gradient[e];
                float4 g;
                g.x = __shfl_sync(ALL, own, k % LANES, LANES);
                g.y = __shfl_sync(ALL, own, k % LANES + 1, LANES);
                g.z = __shfl_sync(ALL, own, k % LANES + 2, LANES);
                g.w = __shfl_sync(ALL, own, k % LANES + 3, LANES);
                float4 moved, change;
                moved.x = fmaxf(old.x + g.x * step.x, 0), change.x = moved.x - old.x;
                g.y -= second.x * change.x, g.z -= third.x * change.x, g.w -= fourth.x * change.x;
                moved.y = fmaxf(old.y + g.y * step.y, 0), change.y = moved.y - old.y;
                g.z -= third.y * change.y, g.w -= fourth.y * change.y;
                moved.z = fmaxf(old.z + g.z * step.z, 0), change.z = moved.z - old.z;
                g.w -= fourth.z * change.z;
                moved.w = fmaxf(old.w + g.w * step.w, 0), change.w = moved.w - old.w;
                __syncwarp();
                if (entry == 0) *reinterpret_cast<float4*>(v + k) = moved;
#pragma unroll
                for (int e = 0; e < ENTRIES; e++) {
                        const float4 with = four(gram + k * WIDTH + 4 * (e * LANES + entry));
                    gradient[e] -= with.x * change.x;
                    gradient[e] -= with.y * change.y;
                    gradient[e] -= with.z * change.z;
                    gradient[e] -= with.w * change.w;
                }
            }
            __syncwarp();
        }
    };
    const auto step_of = [&](int i) {
        const long long instance = first_of(i) + place;
#pragma unroll
        for (int e = 0; e < ENTRIES; e++) {
            const int k = e * LANES + entry;
            v[k] = (float)held[e] * (k < latent ? scale[k] : 0);
            exact_v[k] = v[k];
        }
        __syncwarp();
        if (patterns) {
            const size_t pattern = instance < instances ? patterns[instance] : 0;
            descend(tables + pattern * TABLE, exact + pattern * GRAM);
        } else {
            descend(table, doubles);
        }
        // V for the second product, as its lanes take it.
#pragma unroll
        for (int e = 0; e < ENTRIES; e++) {
            const int k = e * LANES + entry;
            float* const at = weights + ((place / 8 * TILES + k / 8) * 32 + k % 8 * 4 + place % 4) * 2 * PARTS + place / 4 % 2;
            at[0] = large(v[k]);
            if (PARTS == 2) at[2] = small(v[k]);
            if (k < latent && instance < instances) to[instance * latent + k] = v[k];
        }
        fetch(i + 1);
    };

    for (int i = threadIdx.x; i < STAGES * TILE; i += THREADS) tiles[i] = 0;
    __syncthreads();
    for (int i = 0; i < STAGES; i++) {
        load(i);
        copies_begun();
    }
    for (int i = threadIdx.x; i < TABLE && !patterns; i += THREADS) table[i] = tables[i];
    for (int i = threadIdx.x; i < GRAM && !patterns; i += THREADS) doubles[i] = exact[i];
    if (threadIdx.x < STEPPING) fetch(0);

    // The part of U of a warp and its part of C, in the order of tensor cores.
    float u[UNITS][4][TILES][2], totals[UNITS][2][TILES][4];
#pragma unroll
    for (int q = 0; q < UNITS; q++) {
        const int unit = q * ACROSS + across;
        const float* const own = basis + (32 * unit + 4 * member) * WIDTH + group;
#pragma unroll
        for (int step = 0; step < 4; step++)
#pragma unroll
            for (int n = 0; n < TILES; n++)
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    const float value = unit < units ? own[(step / 2 * 16 + step % 2 * 2 + j) * WIDTH + 8 * n] : 0;
                    u[q][step][n][j] = PARTS == 2 ? value : large(value);
                    totals[q][step / 2][n][step % 2 * 2 + j] = 0;
                }
    }

    // Where a lane reads: for the first product 4 columns of both halves of a unit in two rows, for the second 4 columns of 4 rows.
    const int turn = group % 2 * 4 + group / 2 % 2 * 2;
    const int by_row = warp * UNITS * UNIT + group * 32 + (member ^ turn) * 4, half_way = turn & 4 ? -16 : 16;
    const int by_column = warp * UNITS * UNIT + member * 32 + (group ^ (member % 2 * 4 + member / 2 * 2)) * 4;
    for (int i = 0; i < count; i++) {
        copies_done<STAGES - 1>();
        __syncwarp();
        const float* const rows_of_tile = tiles + i % STAGES * TILE + by_row;
        float products[TILES][4] = {};
#pragma unroll
        for (int q = 0; q < UNITS; q++) {
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const float4 top = four(rows_of_tile + q * UNIT + half * half_way);
                const float4 bottom = four(rows_of_tile + q * UNIT + half * half_way + 256);
#pragma unroll
                for (int step = 0; step < 2; step++) {
                    const float both[4] = {step ? top.z : top.x, step ? bottom.z : bottom.x, step ? top.w : top.y,
                                           step ? bottom.w : bottom.y};
                    float a[4], a_rest[4];
#pragma unroll
                    for (int j = 0; j < 4; j++) a[j] = large(both[j]), a_rest[j] = small(both[j]);
#pragma unroll
                    for (int n = 0; n < TILES; n++) {
                        const float* const own = u[q][2 * half + step][n];
                        const float rests[2] = {PARTS == 2 ? small_again(own[0]) : 0, PARTS == 2 ? small_again(own[1]) : 0};
                        multiply(products[n], a, a_rest, own, rests);
                    }
                }
            }
        }
        float* const right = rights + (16 * warp + group) * RIGHT_STRIDE + 2 * member;
#pragma unroll
        for (int n = 0; n < TILES; n++) {
            *reinterpret_cast<float2*>(right + 8 * n) = make_float2(products[n][0], products[n][1]);
            *reinterpret_cast<float2*>(right + 8 * RIGHT_STRIDE + 8 * n) = make_float2(products[n][2], products[n][3]);
        }
        __syncthreads();
        if (threadIdx.x < STEPPING) step_of(i);
        __syncthreads();
        const float* const tile = tiles + i % STAGES * TILE + by_column;
        const float* const weight = weights + (high * 16 * WIDTH + 2 * lane) * PARTS;
#pragma unroll
        for (int q = 0; q < UNITS; q++) {
            float sums[2][TILES][4] = {};
#pragma unroll
            for (int step = 0; step < 2; step++) {
                const float4 top = four(tile + q * UNIT + step * 256), bottom = four(tile + q * UNIT + step * 256 + 128);
                float a[2][4], a_rest[2][4];
#pragma unroll
                for (int m = 0; m < 2; m++) {
                    const float both[4] = {m ? top.z : top.x, m ? top.w : top.y, m ? bottom.z : bottom.x, m ? bottom.w : bottom.y};
#pragma unroll
                    for (int j = 0; j < 4; j++) a[m][j] = large(both[j]), a_rest[m][j] = small(both[j]);
                }
#pragma unroll
                for (int n = 0; n < TILES; n++) {
                    const float* const own = weight + (step * TILES + n) * 64 * PARTS;
                    float b[2], b_rest[2];
                    if (PARTS == 2) {
                        const float4 both = four(own);
                        b[0] = both.x, b[1] = both.y, b_rest[0] = both.z, b_rest[1] = both.w;
                    } else {
                        const float2 both = *reinterpret_cast<const float2*>(own);
                        b[0] = both.x, b[1] = both.y;
                    }
#pragma unroll
                    for (int m = 0; m < 2; m++) multiply(sums[m][n], a[m], a_rest[m], b, b_rest);
                }
            }
            // Tensor cores cut off what does not fit a float, so sums over 16 rows are added up otherwise.
#pragma unroll
            for (int m = 0; m < 2; m++)
#pragma unroll
                for (int n = 0; n < TILES; n++)
#pragma unroll
                    for (int j = 0; j < 4; j++) totals[q][m][n][j] += sums[m][n][j];
        }
        __syncwarp();
        load(i + STAGES);
        copies_begun();

        if ((i + 1) % FLUSH && i + 1 < count) continue;
        const size_t part = (size_t)blockIdx.x * GROUPS + high;
        double* const out = sums_of_parts + (part * 32 * units + 32 * across + 4 * group) * WIDTH + 2 * member;
#pragma unroll
        for (int q = 0; q < UNITS; q++) {
            if (q * ACROSS + across >= units) continue;
#pragma unroll
            for (int j = 0; j < 4; j++)
#pragma unroll
                for (int n = 0; n < TILES; n++) {
                    double2* const at = reinterpret_cast<double2*>(out + (32 * q * ACROSS + j) * WIDTH + 8 * n);
                    float* const own = totals[q][j / 2][n] + j % 2 * 2;
                    double2 sum = *at;
                    sum.x += own[0], sum.y += own[1];
                    *at = sum;
                    own[0] = own[1] = 0;
                }
        }
    }
    copies_done<0>();
}
