cat "$1"; shift
for file in "$@"; do echo "said $file"; head -c 4000 "$file.said" 2>/dev/null; echo; done
