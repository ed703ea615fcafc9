module deployer

go 1.26
