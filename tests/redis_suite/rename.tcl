# What rename.c changes for others to see, changed back for the suite's eyes: command names in errors and in the
# streams of replicas and the AOF. Read by the suite in the mode rename.
set ::renamed {delex|set|setnx|setex|psetex|getset|mset|msetnx|msetex|append|setrange|incr|decr|incrby|decrby|incrbyfloat|get|getdel|getex|mget|strlen|getrange|del|unlink|exists|touch|ttl|pttl|expiretime|pexpiretime|expire|pexpire|expireat|pexpireat|persist}

foreach space {redis valkey} {
    if {[info commands ::${space}::${space}_read_line] eq {}} continue
    rename ::${space}::${space}_read_line ::${space}::read_line_as_sent
    proc ::${space}::${space}_read_line fd {
        regsub -all "'c($::renamed)'" [read_line_as_sent $fd] {'\1'}
    }
}

foreach reader {read_from_replication_stream read_from_aof} {
    rename $reader ${reader}_as_sent
    proc $reader fd "regsub \"^c(\$::renamed)\\\\M\" \[${reader}_as_sent \$fd\] {\\1}"
}
