/* What CPython's headers ask of 64-bit Windows, for compilers that run elsewhere: the
 * sizes of C's types there (LLP64), and that names of python3.dll are imported. */
#ifndef DLW_WINDOWS_PYCONFIG_H
#define DLW_WINDOWS_PYCONFIG_H

#define MS_WINDOWS
#define MS_WIN32
#define MS_WIN64
#define HAVE_DECLSPEC_DLL

#define SIZEOF_INT 4
#define SIZEOF_LONG 4
#define SIZEOF_LONG_LONG 8
#define SIZEOF_SIZE_T 8
#define SIZEOF_VOID_P 8
#define SIZEOF_WCHAR_T 2

#endif
