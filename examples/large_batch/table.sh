#!/bin/sh
# Prints the table of README.md: accuracy on the 360 test images, the mean of so many seeds, by batch, epochs and optimizer.
# Needs einc on the path (or EINC=path/to/einc); takes about a minute. Run: sh table.sh [SEEDS]
set -eu
cd "$(dirname "$0")"
seeds=${1:-3}
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
"${EINC:-einc}" build digits.ein -o "$folder/digits"
echo "| batch | epochs | steps | momentum | lars | lars_ema | adamw | lamb |"
echo "|---|---|---|---|---|---|---|---|"
for setting in "64 30" "512 30" "1437 30" "512 100" "1437 100"; do
  batch=${setting% *} epochs=${setting#* }
  seed=0
  while [ "$seed" -lt "$seeds" ]; do
    "$folder/digits" --dim B="$batch" --dim E="$epochs" --seed "$seed" --progress none
    seed=$((seed + 1))
  done | awk -v batch="$batch" -v epochs="$epochs" -v seeds="$seeds" '
    { sum[$1] += $3 }
    END {
      steps = epochs * int((1437 + batch - 1) / batch)
      row = "| " batch " | " epochs " | " steps
      n = split("momentum lars lars_ema adamw lamb", names)
      for (i = 1; i <= n; i++) row = row sprintf(" | %.4f", sum[names[i]] / seeds)
      print row " |"
    }'
done
