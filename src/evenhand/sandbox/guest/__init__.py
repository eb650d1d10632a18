"""What runs inside the sandbox: standard library only, imports nothing of ours from outside this folder.

`supervisor` is the first process. It starts the program in a child (`program`), runs the test itself
(`examiner`) and reports to the host; `values` carries plain data between the two, `wire` frames it.
"""
