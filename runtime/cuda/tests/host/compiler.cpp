// A run-time compiler of CUDA C++ for the host, for tests of what calls NVIDIA's: `libnvrtc.so`. The system's C++ compiler makes a shared
// library of a text, of which `driver.cpp` calls the functions. HEADER is the path of `threads.hpp`. If the environment variable
// HOST_CUDA_NVRTC names NVIDIA's library, its compiler has to accept every text too.

#include <dlfcn.h>
#include <fstream>
#include <stdio.h>
#include <sstream>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

enum Result { SUCCESS = 0, INVALID_INPUT = 3, COMPILATION = 6 };

struct Program { std::string text, log, code, portable; };

std::string contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
}

// The names of the text's functions, each with whether its threads meet.
std::vector<std::pair<std::string, bool>> functions(const std::string& text) {
    const std::string mark = "extern \"C\" __global__ void ";
    std::vector<std::pair<std::string, bool>> all;
    for (size_t at = text.find(mark); at != std::string::npos;) {
        const size_t begin = at + mark.size(), next = text.find(mark, begin);
        const std::string own = text.substr(begin, next == std::string::npos ? next : next - begin);
        bool meets = false;
        for (const char* sign : {"__syncthreads", "over_warp", "over_block", "ein::down"}) meets |= own.find(sign) != std::string::npos;
        all.push_back({own.substr(0, own.find('(')), meets});
        at = next;
    }
    return all;
}

const char* launcher = R"(
#include <utility>
namespace host {
template <class... A, size_t... I> void call(void (*kernel)(A...), void** words, std::index_sequence<I...>) { kernel(*(A*)words[I]...); }
template <class... A> constexpr unsigned count(void (*)(A...)) { return sizeof...(A); }
template <class... A> void call(void (*kernel)(A...), void** words) { call(kernel, words, std::make_index_sequence<sizeof...(A)>()); }
}
)";

std::string unit(const std::string& text) {
    std::string all = "#define __forceinline__ inline\n#include \"" HEADER "\"\n" + text + launcher;
    for (const auto& [name, meets] : functions(text)) {
        all += "static void body_" + name + "(void* words) { host::call(" + name + ", (void**)words); }\n";
        all += "extern \"C\" { EXPORTED extern const unsigned parameters_" + name + " = host::count(" + name + "); }\n";
        all += "extern \"C\" EXPORTED bool launch_" + name + "(unsigned blocks, unsigned threads, void** words) {\n";
        all += "    emulated::Wrong wrong;\n    return emulated::launch(blocks, threads, ";
        all += std::string(meets ? "true" : "false") + ", body_" + name + ", words, &wrong);\n}\n";
    }
    return all;
}

// Gives a text to NVIDIA's compiler. Returns its verdict, and its words in the log.
Result asked(void* library, const Program& program, int count, const char* const* options, std::string* log) {
    const auto function = [&](const char* name) {
        void* found = dlsym(library, name);
        if (!found) { fprintf(stderr, "HOST_CUDA_NVRTC: no %s\n", name); abort(); }
        return found;
    };
    void* made = nullptr;
    const auto create = (int (*)(void**, const char*, const char*, int, const char* const*, const char* const*))function("nvrtcCreateProgram");
    if (create(&made, program.text.c_str(), "kernels.cu", 0, nullptr, nullptr) != SUCCESS) return INVALID_INPUT;
    const int verdict = ((int (*)(void*, int, const char* const*))function("nvrtcCompileProgram"))(made, count, options);
    size_t size = 0;
    ((int (*)(void*, size_t*))function("nvrtcGetProgramLogSize"))(made, &size);
    log->resize(size);
    ((int (*)(void*, char*))function("nvrtcGetProgramLog"))(made, log->data());
    ((int (*)(void**))function("nvrtcDestroyProgram"))(&made);
    return (Result)verdict;
}

}  // namespace

#define CALL extern "C" __attribute__((visibility("default"))) Result

CALL nvrtcCreateProgram(Program** program, const char* text, const char*, int, const char* const*, const char* const*) {
    *program = new Program{text, "", "", ""};
    return SUCCESS;
}
CALL nvrtcDestroyProgram(Program** program) { delete *program; return SUCCESS; }
// The minor version stands for what is in every image besides its text.
CALL nvrtcVersion(int* major, int* minor) {
    *major = 0;
    *minor = (int)(std::hash<std::string>()(contents(HEADER) + __DATE__ __TIME__) & 0x7fffffff);
    return SUCCESS;
}
CALL nvrtcGetNumSupportedArchs(int* count) { *count = 2; return SUCCESS; }
CALL nvrtcGetSupportedArchs(int* all) { all[0] = 80; all[1] = 90; return SUCCESS; }
CALL nvrtcCompileProgram(Program* program, int count, const char* const* options) {
    unsigned architecture = 0;
    bool real = false;
    for (int option = 0; option < count; ++option) {
        real |= sscanf(options[option], "--gpu-architecture=sm_%u", &architecture) == 1;
        sscanf(options[option], "--gpu-architecture=compute_%u", &architecture);
    }
    if (architecture != 80 && architecture != 90) return INVALID_INPUT;
    if (const char* path = getenv("HOST_CUDA_NVRTC")) {
        void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!library) { fprintf(stderr, "HOST_CUDA_NVRTC: %s\n", dlerror()); abort(); }
        const Result verdict = asked(library, *program, count, options, &program->log);
        if (verdict != SUCCESS) return verdict;
    }
    char folder[] = "/tmp/host-cuda-XXXXXX";
    if (!mkdtemp(folder)) return INVALID_INPUT;
    const std::string at = folder, source = at + "/unit.cpp", target = at + "/unit.so", log = at + "/log";
    std::ofstream(source) << unit(program->text);
    const char* named = getenv("CXX");
    const std::string compiler = named && *named ? named : "c++";
    const std::string command = compiler + " -std=c++17 -O1 -fPIC -shared -w -fwrapv -ffp-contract=off -fno-math-errno -fvisibility=hidden " +
                                source + " -o " + target + " -lm 2> " + log;
    const bool compiled = system(command.c_str()) == 0;
    program->log = contents(log);
    if (compiled) {
        const std::string code = contents(target);
        const uint64_t length = code.size();
        const auto image = [&](char kind) { return "HOST" + std::string{kind, (char)architecture} + std::string((const char*)&length, 8) + code; };
        if (real) program->code = image('c');
        program->portable = image('p');
    }
    for (const std::string& file : {source, target, log}) unlink(file.c_str());
    rmdir(folder);
    return compiled ? SUCCESS : COMPILATION;
}
CALL nvrtcGetCUBINSize(Program* program, size_t* size) { *size = program->code.size(); return SUCCESS; }
CALL nvrtcGetCUBIN(Program* program, char* image) { memcpy(image, program->code.data(), program->code.size()); return SUCCESS; }
CALL nvrtcGetPTXSize(Program* program, size_t* size) { *size = program->portable.size() + 1; return SUCCESS; }
CALL nvrtcGetPTX(Program* program, char* image) { memcpy(image, program->portable.c_str(), program->portable.size() + 1); return SUCCESS; }
CALL nvrtcGetProgramLogSize(Program* program, size_t* size) { *size = program->log.size() + 1; return SUCCESS; }
CALL nvrtcGetProgramLog(Program* program, char* log) { memcpy(log, program->log.c_str(), program->log.size() + 1); return SUCCESS; }
