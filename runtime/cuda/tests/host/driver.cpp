// A CUDA driver that runs on the host, for tests of what calls the driver: `libcuda.so`. Images are those of `compiler.cpp`. Everything is
// done when a call returns. HOST_CUDA_GPUS says how many GPUs there are (1), HOST_CUDA_MEMORY how many bytes each has (4 GiB),
// HOST_CUDA_ARCHITECTURE of which architecture they are (90), and HOST_CUDA_FAILS names a call that fails.

#include <dlfcn.h>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace {

enum Result { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, INVALID_DEVICE = 101, INVALID_IMAGE = 200, INVALID_CONTEXT = 201, NO_BINARY = 209,
              NOT_FOUND = 500, LAUNCH_FAILED = 719 };

std::mutex mutex;
// Memory that is given out, by address: how many bytes, and by which GPU's context.
struct Given { size_t bytes; void* context; };
std::map<uint64_t, Given> memory;
std::map<void*, size_t> given;
thread_local void* current = nullptr;

const char* variable(const char* name) {
    const char* value = getenv(name);
    return value && *value ? value : nullptr;
}
int gpus() { return variable("HOST_CUDA_GPUS") ? atoi(variable("HOST_CUDA_GPUS")) : 1; }
size_t all() { return variable("HOST_CUDA_MEMORY") ? strtoull(variable("HOST_CUDA_MEMORY"), nullptr, 10) : size_t(4) << 30; }
int architecture() { return variable("HOST_CUDA_ARCHITECTURE") ? atoi(variable("HOST_CUDA_ARCHITECTURE")) : 90; }
bool fails(const char* call) { return variable("HOST_CUDA_FAILS") && !strcmp(variable("HOST_CUDA_FAILS"), call); }

// The memory that an address lies in, if it is given out.
const std::pair<const uint64_t, Given>* owner(uint64_t at) {
    std::lock_guard<std::mutex> lock(mutex);
    auto next = memory.upper_bound(at);
    if (next == memory.begin()) return nullptr;
    --next;
    return at < next->first + next->second.bytes ? &*next : nullptr;
}
// True if so many bytes from an address on are given out by the GPU of the current context. No GPU sees another one's memory.
bool inside(uint64_t at, size_t bytes) {
    const auto own = owner(at);
    return own ? own->second.context == current && at + bytes <= own->first + own->second.bytes : bytes == 0;
}

}  // namespace

#define CALL extern "C" __attribute__((visibility("default"))) Result
#define NEEDS_CONTEXT if (!current) return INVALID_CONTEXT

CALL cuInit(unsigned) { return gpus() > 0 ? SUCCESS : NO_DEVICE; }
CALL cuDeviceGetCount(int* count) { *count = gpus(); return SUCCESS; }
CALL cuDeviceGet(int* device, int number) { *device = number; return number < gpus() ? SUCCESS : INVALID_DEVICE; }
CALL cuDeviceGetName(char* name, int length, int device) { snprintf(name, length, "Host GPU %d", device); return SUCCESS; }
CALL cuDeviceTotalMem_v2(size_t* bytes, int) { *bytes = all(); return SUCCESS; }
CALL cuDeviceGetAttribute(int* value, int attribute, int) {
    switch (attribute) {
        case 75: *value = architecture() / 10; break;  // compute capability, major
        case 76: *value = architecture() % 10; break;  // and minor
        case 115: *value = 1; break;                   // memory pools
        default: *value = 0;
    }
    return SUCCESS;
}
CALL cuDevicePrimaryCtxRetain(void** context, int device) { *context = (void*)(uintptr_t)(device + 1); return SUCCESS; }
CALL cuDevicePrimaryCtxRelease_v2(int) { return SUCCESS; }
CALL cuCtxGetCurrent(void** context) { *context = current; return SUCCESS; }
CALL cuCtxSetCurrent(void* context) { current = context; return SUCCESS; }
CALL cuCtxSynchronize() { NEEDS_CONTEXT; return SUCCESS; }
CALL cuStreamCreate(void** stream, unsigned) { NEEDS_CONTEXT; *stream = malloc(1); return SUCCESS; }
CALL cuStreamDestroy_v2(void* stream) { free(stream); return SUCCESS; }
CALL cuStreamSynchronize(void*) { NEEDS_CONTEXT; return fails("cuStreamSynchronize") ? LAUNCH_FAILED : SUCCESS; }
CALL cuDeviceGetDefaultMemPool(void** pool, int) { *pool = &memory; return SUCCESS; }
CALL cuMemPoolSetAttribute(void*, int, void*) { return SUCCESS; }
CALL cuMemPoolTrimTo(void*, size_t) { return SUCCESS; }

CALL cuMemAllocAsync(uint64_t* address, size_t bytes, void*) {
    NEEDS_CONTEXT;
    if (bytes == 0) return INVALID_VALUE;
    std::lock_guard<std::mutex> lock(mutex);
    if (given[current] + bytes > all() || fails("cuMemAllocAsync")) return OUT_OF_MEMORY;
    void* place = nullptr;
    if (posix_memalign(&place, 256, bytes)) return OUT_OF_MEMORY;
    memset(place, 0xff, bytes);
    *address = (uint64_t)place;
    memory[*address] = Given{bytes, current};
    given[current] += bytes;
    return SUCCESS;
}
CALL cuMemFreeAsync(uint64_t address, void*) {
    NEEDS_CONTEXT;
    std::lock_guard<std::mutex> lock(mutex);
    auto found = memory.find(address);
    if (found == memory.end()) return INVALID_VALUE;
    if (found->second.context != current) return INVALID_VALUE;
    given[current] -= found->second.bytes;
    memory.erase(found);
    free((void*)address);
    return SUCCESS;
}
CALL cuMemGetInfo_v2(size_t* free, size_t* total) {
    NEEDS_CONTEXT;
    std::lock_guard<std::mutex> lock(mutex);
    *free = all() - given[current];
    *total = all();
    return SUCCESS;
}
CALL cuMemsetD8Async(uint64_t at, unsigned char byte, size_t bytes, void*) {
    NEEDS_CONTEXT;
    if (!inside(at, bytes)) return INVALID_VALUE;
    memset((void*)at, byte, bytes);
    return SUCCESS;
}
CALL cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void*) {
    NEEDS_CONTEXT;
    if (!inside(to, bytes)) return INVALID_VALUE;
    memcpy((void*)to, from, bytes);
    return SUCCESS;
}
CALL cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void*) {
    NEEDS_CONTEXT;
    if (!inside(from, bytes)) return INVALID_VALUE;
    memcpy(to, (void*)from, bytes);
    return SUCCESS;
}
CALL cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void*) {
    NEEDS_CONTEXT;
    if (!inside(to, bytes) || !inside(from, bytes)) return INVALID_VALUE;
    memcpy((void*)to, (void*)from, bytes);
    return SUCCESS;
}

// An image is "HOST", c for machine code or p for portable text, its architecture, its length as eight bytes, and a shared library. Code is of a
// GPU's own generation; neither kind is newer than the GPU.
CALL cuModuleLoadData(void** module, const char* image) {
    NEEDS_CONTEXT;
    uint64_t length;
    if (memcmp(image, "HOST", 4)) return INVALID_IMAGE;
    const int own = image[5];
    if (own > architecture() || (image[4] == 'c' && own / 10 != architecture() / 10)) return NO_BINARY;
    memcpy(&length, image + 6, 8);
    const int file = memfd_create("kernels", 0);
    for (uint64_t done = 0; done < length;) {
        const ssize_t wrote = write(file, image + 14 + done, length - done);
        if (wrote <= 0) return OUT_OF_MEMORY;
        done += wrote;
    }
    const std::string path = "/proc/self/fd/" + std::to_string(file);
    *module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!*module) { fprintf(stderr, "%s\n", dlerror()); return INVALID_IMAGE; }
    // The file stays open: the next one must not get its path, by which libraries are told apart.
    return SUCCESS;
}
// A function, and how many parameters it has.
struct Function { bool (*launch)(unsigned, unsigned, void**); unsigned parameters; };
CALL cuModuleGetFunction(Function** function, void* module, const char* name) {
    NEEDS_CONTEXT;
    void* const launch = dlsym(module, (std::string("launch_") + name).c_str());
    const unsigned* const parameters = (const unsigned*)dlsym(module, (std::string("parameters_") + name).c_str());
    if (!launch || !parameters) return NOT_FOUND;
    *function = new Function{(bool (*)(unsigned, unsigned, void**))launch, *parameters};
    return SUCCESS;
}
CALL cuLaunchKernel(Function* function, unsigned blocks, unsigned y, unsigned z, unsigned threads, unsigned, unsigned, unsigned, void*, void** words,
                    void**) {
    NEEDS_CONTEXT;
    if (blocks == 0 || y != 1 || z != 1 || threads == 0 || threads > 1024) return INVALID_VALUE;
    if (fails("cuLaunchKernel")) return LAUNCH_FAILED;
    for (unsigned word = 0; word < function->parameters; ++word) {
        const auto own = owner(*(const uint64_t*)words[word]);
        if (own && own->second.context != current) return LAUNCH_FAILED;
    }
    return function->launch(blocks, threads, words) ? SUCCESS : LAUNCH_FAILED;
}

CALL cuGetErrorName(Result error, const char** name) {
    switch (error) {
        case OUT_OF_MEMORY: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
        case LAUNCH_FAILED: *name = "CUDA_ERROR_LAUNCH_FAILED"; break;
        case INVALID_VALUE: *name = "CUDA_ERROR_INVALID_VALUE"; break;
        case NO_DEVICE: *name = "CUDA_ERROR_NO_DEVICE"; break;
        default: *name = "CUDA_ERROR_UNKNOWN";
    }
    return SUCCESS;
}
CALL cuGetErrorString(Result error, const char** words) {
    *words = error == LAUNCH_FAILED ? "unspecified launch failure" : error == OUT_OF_MEMORY ? "out of memory" : "another error";
    return SUCCESS;
}
