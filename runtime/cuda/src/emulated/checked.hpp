// Memory of which every access is checked, for the functions of a unit. Stands behind `threads.hpp`.

#define DEVICE inline

namespace emulated {

template <class T> struct Plain { typedef T Type; };
template <class T> struct Plain<const T> { typedef T Type; };

// Memory of so many elements. What lies outside is not touched, and told.
template <class T> struct Memory {
    T* elements;
    unsigned long long length;
    T& operator[](unsigned long long at) const {
        static thread_local typename Plain<T>::Type outside;
        if (__builtin_expect(at < length, 1)) return elements[at];
        say_wrong("an element outside the memory is touched", at, length);
        outside = typename Plain<T>::Type();
        return outside;
    }
};

}  // namespace emulated

namespace ein {
template <class T> using In = emulated::Memory<const T>;
template <class T> using Out = emulated::Memory<T>;
}  // namespace ein
