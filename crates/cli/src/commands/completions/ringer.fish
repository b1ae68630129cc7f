# Completion of ringer for fish.
function __ringer_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found (ringer complete -- $words[2..-1] 2>/dev/null)
    if test $status -eq 1
        __fish_complete_path (commandline -ct)
    else
        printf '%s\n' $found
    end
end
complete -c ringer -f -k -a '(__ringer_complete)'
