# Completion of ringer for bash.
_ringer() {
    local found status line word
    found=$(ringer complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    status=$?
    COMPREPLY=()
    if [[ $status -eq 1 ]]; then
        compopt -o default
    elif [[ -n $found ]]; then
        while IFS= read -r line; do
            # bash inserts a candidate as it is. Names come from other machines: nothing in one may be run.
            printf -v word %q "${line%%$'\t'*}"
            COMPREPLY+=("$word")
        done <<<"$found"
    fi
}
complete -F _ringer ringer
