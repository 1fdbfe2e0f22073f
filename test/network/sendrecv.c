/* Two ranks exchange 64 MB both ways at once, five times; rank 0 prints the median rate a direction in GB/s.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kBytes = 64 * 1000 * 1000, kTimes = 5 };

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  int rank = 0;
  double seconds[kTimes];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char* out = calloc(kBytes, 1);
  char* in = calloc(kBytes, 1);
  if (out == NULL || in == NULL) MPI_Abort(MPI_COMM_WORLD, 3);
  for (int i = 0; i < kTimes; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    MPI_Sendrecv(out, kBytes, MPI_BYTE, 1 - rank, 0, in, kBytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    seconds[i] = MPI_Wtime() - start;
  }
  qsort(seconds, kTimes, sizeof seconds[0], compare);
  if (rank == 0) printf("%.3f\n", kBytes / seconds[kTimes / 2] / 1e9);
  free(out);
  free(in);
  MPI_Finalize();
  return 0;
}
