#compdef ringer
# Completion of ringer for zsh.
_ringer() {
    local found line
    local -a candidates
    found=$(ringer complete -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)
    if (( $? == 1 )); then
        _files
        return
    fi
    for line in "${(@f)found}"; do
        [[ -n $line ]] && candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done
    (( $#candidates )) && _describe -V ringer candidates
}
if [[ $funcstack[1] == _ringer ]]; then
    _ringer "$@"
else
    compdef _ringer ringer
fi
