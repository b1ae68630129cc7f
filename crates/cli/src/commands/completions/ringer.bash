# Completion of ringer for bash.
_ringer() {
    local found status line
    found=$(ringer complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    status=$?
    COMPREPLY=()
    if [[ $status -eq 1 ]]; then
        compopt -o default
    elif [[ -n $found ]]; then
        while IFS= read -r line; do
            COMPREPLY+=("${line%%$'\t'*}")
        done <<<"$found"
    fi
}
complete -F _ringer ringer
