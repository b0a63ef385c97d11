# The server shows the command that ran, ckv.set for SET (docs/transparent.md). What the suite reads from SLOWLOG and
# MONITOR is changed back, so that its tests see what they are about. Read by the suite in the mode prefixes.
foreach space {redis valkey} {
    if {[info commands ::${space}::${space}_read_line] eq {}} continue
    rename ::${space}::${space}_read_line ::${space}::read_line_as_sent
    proc ::${space}::${space}_read_line fd {
        regsub -all {"ckv[.+](\w+)"} [read_line_as_sent $fd] {"\1"}
    }
    rename ::${space}::${space}_bulk_read ::${space}::bulk_read_as_sent
    proc ::${space}::${space}_bulk_read args {
        regsub {^ckv[.+]((?!maps|prefixes|maxmemory)\w+)$} [bulk_read_as_sent {*}$args] {\1}
    }
}
