#!/bin/sh
# A remote worker of one job at a time, with curl and jq.
#
#   JOBQUEUE_URL=https://shop.example/jobqueue JOBQUEUE_TOKEN=jq_7_… sh worker.sh
set -u
LEASE=${LEASE:-60} # seconds; it is renewed while a job runs

send() { # method, path, body
    printf 'header = "Authorization: Bearer %s"\n' "$JOBQUEUE_TOKEN" |
        curl -sS --config - --retry 5 --retry-connrefused -X "$1" "$JOBQUEUE_URL/v1$2" \
            -H "Content-Type: application/json" -d "$3"
}

resize() { # the work: reads the data of a job, writes its result, as JSON
    jq -c 'if .image < 0 then error("no image \(.image)") else {image, width: 640} end'
}

worker=$(send POST /workers "{
    \"name\": \"sh-$$\", \"job_types\": [\"fleet.resize\"], \"lease_seconds\": $LEASE
}" | jq -e .id) || exit 1
trap 'stopping=1' TERM INT
stopping=

while [ -z "$stopping" ]; do
    claimed=$(send POST "/workers/$worker/claim" '{"limit": 1, "wait": 10}')
    if ! job=$(printf %s "$claimed" | jq -ce '.jobs[0]'); then
        case $(printf %s "$claimed" | jq -r '"\(.id)\(.asked)"') in
            *worker_lost* | *stop* | *restart*) break ;;
        esac
        sleep "$(printf %s "$claimed" | jq -r '.poll_seconds // 1')"
        continue
    fi
    while sleep $((LEASE / 3)); do
        send PUT "/workers/$worker" '{}' >/dev/null
    done &
    renewing=$!
    errors=$(mktemp)
    if result=$(printf %s "$job" | jq -c .data | resize 2>"$errors"); then
        outcome=$(jq -nc --argjson result "$result" '{status: "succeeded", $result}')
    else
        outcome=$(jq -nc --rawfile message "$errors" \
            '{status: "failed", retryable: false, error: {class: "ShellError", $message}}')
    fi
    kill "$renewing"
    rm -f "$errors"
    path=$(printf %s "$job" | jq -r '"/jobs/\(.name)/\(.id)"')
    body=$(printf %s "$job" | jq -c --argjson worker "$worker" --argjson outcome "$outcome" \
        '{$worker, fence} + $outcome')
    send POST "$path" "$body" | jq -c '[.id, .status]'
done
send DELETE "/workers/$worker" '{}' >/dev/null
