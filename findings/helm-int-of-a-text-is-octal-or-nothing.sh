#!/bin/sh
# Helm 3.22.0 and 4.3.1. Numbers come as texts, as from --set-string, and templates make them numbers. The guess: int "08" is 8, int "010" is 10 and int "2.9"
# is 2, as atoi, float64 and int of a number have it. A leading zero makes int, int64 and add read octal, and what isn't a whole number
# then, "08" too, is 0 without a word.
. "$(dirname "$0")/lib/helm.sh"
rm -r p/charts
cat >p/templates/t.yaml <<'Y'
int: {{ list (int "010") (int "08") (int "2.9") (add "010" 1) | toJson }}
others: {{ list (atoi "010") (atoi "08") (float64 "010" | int) (float64 "08" | int) (int 2.9) | toJson }}
Y
for helm in helm3 helm4; do
	same "$helm" "$(rendered "$helm")" 'int: [8,0,0,9] others: [10,8,10,8,2]'
done
