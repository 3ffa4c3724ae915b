constant float scale = 10;
