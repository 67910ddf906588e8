# wrap.awk - prose at most 118 columns wide; tables, code, headings and pictures as they are.
#
# A line that is too long is broken at spaces; what belongs to a list item is indented under it.
#
# SPDX-License-Identifier: Apache-2.0

/^```/ { code = !code }

code || /^(\||#|!|<|    )/ || length <= 118 {
    print
    next
}

{
    indent = /^- / ? "  " : ""
    line = ""
    for (i = 1; i <= NF; i++) {
        if (line != "" && length(line) + 1 + length($i) > 118) {
            print line
            line = indent $i
        } else
            line = line == "" ? $i : line " " $i
    }
    print line
}
