/* bcryptprimitives.dll for Wine 8, which has none: the standard library of Rust takes random numbers from it. */

#include <stddef.h>
#include <windows.h>

/* RtlGenRandom of ntsecapi.h. */
BOOLEAN NTAPI SystemFunction036(void *buffer, ULONG bytes);

__declspec(dllexport) BOOL ProcessPrng(unsigned char *buffer, size_t bytes)
{
    return SystemFunction036(buffer, (ULONG)bytes);
}
