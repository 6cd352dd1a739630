#!/usr/bin/env bash
# The main job from start to end, on this machine's own files: `make demo`, or with the package installed `examples/demo.sh`.
#
# DEMO_SOURCE  the tree to take the inventory of (/usr); it is only read
# DEMO_DIR     where the catalog and the copy go; what an earlier demo left there is removed
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source=$(realpath "${DEMO_SOURCE:-/usr}")
folder=${DEMO_DIR:-${TMPDIR:-/tmp}/bucketcatalog-demo-$(id -u)}
catalog=$folder/catalog
copy=$folder/copy
began=$EPOCHREALTIME

step() { # step TITLE COMMAND...: run it, indented, and say how long it took
    local title=$1 start=$EPOCHREALTIME
    shift
    printf '\n== %s\n' "$title"
    "$@" 2>&1 | sed 's/^/   /'
    awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "   (%.1f s)\n", b - a }'
}

three_writers() { # each takes its part at the same time; they share nothing but the catalog's prefix
    bucketcatalog harvest "$source" "$catalog" --writer node-1 --include "$split/*" &
    local one=$!
    bucketcatalog harvest "$source" "$catalog" --writer node-2 --exclude "$split/*" &
    local two=$!
    bucketcatalog harvest "$copy" "$catalog" --writer node-3 --bucket copy &
    local three=$!
    wait "$one"
    wait "$two"
    wait "$three"
    bucketcatalog info "$catalog"
}

second_harvest() {
    bucketcatalog harvest "$copy" "$catalog" --writer node-3 --bucket copy
    bucketcatalog diff "$catalog" --from "$before" --limit 5
}

in_spark() { # what Java has to say while it starts goes to a file
    python "$here/demo_spark.py" "$catalog" "$before" 2>"$folder/spark.log" || {
        tail -n 20 "$folder/spark.log"
        return 1
    }
}

if [[ -e $folder && ! -e $folder/.bucketcatalog-demo ]]; then
    echo "$folder is there and is no demo's: set DEMO_DIR to another place" >&2
    exit 1
fi
rm -rf "$folder"
mkdir -p "$folder"
touch "$folder/.bucketcatalog-demo"

IFS=$'\t' read -r files split subtree < <(python "$here/demo_tree.py" pick "$source")
echo "source: $source, $files files; copy: $copy, made of $source/$subtree; catalog: $catalog"
if ((files < 50000)); then
    echo "note: the demo is meant for 50,000 files and more; DEMO_SOURCE names another tree"
fi
mkdir -p "$copy"
cp -a "$source/$subtree/." "$copy/"

step "first harvest, by three writers at the same time" three_writers
step "a checkpoint of what all three have written" bucketcatalog checkpoint "$catalog" --all-writers
before=$(date -u +%Y-%m-%dT%H:%M:%S.%6NZ)
step "changes to the copy" python "$here/demo_tree.py" change "$copy"
step "second harvest of the copy: only what changed" second_harvest
step "the source has not changed: nothing is committed" bucketcatalog harvest "$source" "$catalog" --writer node-1
step "in Spark: the largest directories, what was deleted, what differs from before, the history of one object" in_spark

awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { printf "\nDone in %.0f s. ", b - a }'
cat <<END
The catalog stays at $catalog. Next:

   bucketcatalog info $catalog
   bucketcatalog ls $catalog $source --delimiter /
   bucketcatalog ls $catalog copy --deleted --limit 10
   bucketcatalog diff $catalog --from $before
   bucketcatalog stat $catalog copy added-by-the-demo/0.txt --history
   bucketcatalog log $catalog

   spark.read.format("bucketcatalog").load("$catalog").show()

They run with this demo's environment: scripts/run bash
END
