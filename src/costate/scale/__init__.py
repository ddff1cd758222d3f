"""Scale-out: numbered shards of work, computed here, by processes of this machine, or by a cluster, with the same bits."""
