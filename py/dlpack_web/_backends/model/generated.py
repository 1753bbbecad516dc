"""Generated from tools/tables by `make generate`: do not edit."""

# Of options, the kind and what each must be; those of an adapter.
OPTIONS: dict[str, tuple[str | list[str], str]] = {
    "features": ("names", 'a list of names: ["shader-f16"]'),
    "powerPreference": (
        ["low-power", "high-performance"],
        "low-power or high-performance",
    ),
    "featureLevel": (["core", "compatibility"], "core or compatibility"),
    "forceFallbackAdapter": ("flag", "a boolean"),
    "label": ("text", "a string"),
}
OF_ADAPTER = ["powerPreference", "featureLevel", "forceFallbackAdapter"]
DEFAULT_LIMITS = ("maxBufferSize", "maxStorageBufferBindingSize")
DEFAULT_FEATURES = ("shader-f16", "subgroups", "timestamp-query")
REQUEST = {
    "requiredFeatures": "features",
    "requiredLimits": "each limit by its own name, for example maxBufferSize",
}
HELP = {
    "\\b(?:let|var(?:<[^>]*>)?) \\w+(?: =|:)[^\\n]*\\ngenerated source": "WGSL reserves the parameter's name: choose another",
    "\\*\\*": "WGSL has no **: write pow(x, 2.0)",
    "\\brand(?:om|int|n)? *[(.]": "WGSL has no random numbers: pass a tensor of them, or compute them of i",
    "\\b(?:np|numpy|[mM]ath|torch|jnp|cp|tf)\\.\\w": "functions of WGSL have no prefix: write sin(x)",
    "\\bfor\\b[^\\n]*\\bin\\b|\\bfor *\\( *(?!var\\b)\\w+ +\\w+ *=": "a loop is for (var j = 0u; j < n; j++) { … }",
    "\\( *(?:u?int|float|double|half|unsigned|long|[fiu]\\d\\d)\\d* *\\)": "a conversion is a call: write f32(x), i32(x) or u32(x)",
    "\\b(?:u?int|float|double|half|long|short|char)(?:\\d\\d)?(?:_t)? *\\(": "a conversion is a call: write f32(x), i32(x) or u32(x)",
    "\\b(?:u?int|float|double|half|unsigned|long|short|char|auto|bool|size)(?:\\d\\d)?(?:_t)? +\\w+ *(?:[=;,[]|\\n)": "variables have no type before their name: write let j = 2, or var j = 2 if it changes",
    "\\b(?:u?int|float|double|half)\\d*\\b": "the types of WGSL are f32, i32, u32, f16 and vectors such as vec4f",
    "\\?[^:\\n]*:|\\bif\\b[^{\\n]*\\belse\\b": "a choice of values is select(otherwise, value, condition)",
    "\\b(?:if|elif|else|while)\\b[^{\\n]*(?::|; *\\n)": "blocks have braces: write if (x > 2) { … } else { … }",
    "\\bf(?:abs|max|min|mod)f?\\b|\\b(?:abs|pow|exp|log|sqrt|sin|cos|tan|tanh|floor|ceil|max|min)f\\b": "write abs(x), max(x, y), min(x, y), x % y: functions of WGSL take every type",
    "\\breturn\\b[^\\n]*\\n(?!line)|\\n(?!line)[^\\n]*.return. expression": "formulas have no return: set the output, y = 2 * x (of map and reduce, write the value alone)",
    "\\b(?:and|or|not|True|False)\\b": "WGSL has && || ! true false",
    "(?:^|[ ;{])(\\w+) *=[^=\\n][^\\n]*\\n(?:[^\\n]*\\n)?[^\\n]*(?:unresolved \\w+|identifier:) .?\\1\\b": "declare a new name: write let z = 2 * x, or var z if it changes",
}
